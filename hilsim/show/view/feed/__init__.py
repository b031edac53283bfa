"""Sources of scans for the live view."""
