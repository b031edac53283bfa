"""Background maps: from captures, to files, and back."""
