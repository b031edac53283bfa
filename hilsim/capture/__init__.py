"""Captures in and out: PCAP and PCAPNG files and live sockets become ``CapturedDatagram``; frames become nanosecond PCAP."""
