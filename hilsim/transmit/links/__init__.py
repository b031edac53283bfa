"""Serial, TCP and UDP links, and their data rates."""
