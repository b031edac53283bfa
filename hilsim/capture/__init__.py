"""PCAP in and out."""
