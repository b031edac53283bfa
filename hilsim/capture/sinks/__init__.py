"""Sinks of a stream: each stores or forwards the sent packets, for example in PCAP files."""
