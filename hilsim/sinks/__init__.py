"""What follows a stream: each sink puts what was sent somewhere else. The first is PCAP files."""
