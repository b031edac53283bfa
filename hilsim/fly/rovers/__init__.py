"""Rovers: each sends its pose, its scan and its buttons, and receives commands, in cycles of one clock."""
