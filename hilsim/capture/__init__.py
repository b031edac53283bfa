"""Capture files and live sockets: PCAP, PCAPNG and sockets are read as ``CapturedDatagram``; frames are written as nanosecond PCAP."""
