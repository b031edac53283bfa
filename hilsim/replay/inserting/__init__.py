"""Objects in recorded packets, offline."""
