"""Faults of the network on command: what befalls a datagram between its sensor and the receiver."""
