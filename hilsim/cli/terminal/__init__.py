"""Output on a terminal while a command works."""
