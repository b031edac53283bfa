"""What a capture holds: its packets with their times, its flows, and where a loop of it can be cut."""
