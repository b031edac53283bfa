"""Rovers: each sends its pose, its scan and its buttons, and takes commands, in cycles of one clock."""
