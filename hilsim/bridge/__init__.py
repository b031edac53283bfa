"""What an autopilot is connected to: its messages, its links, and the range sensors that its own drivers read."""
