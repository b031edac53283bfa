"""Background maps: generation from captures, and files."""
