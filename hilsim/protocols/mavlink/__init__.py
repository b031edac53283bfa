"""MAVLink 2 frames and messages."""
