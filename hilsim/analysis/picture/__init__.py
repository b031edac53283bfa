"""Pictures of scans for people."""
