"""Pictures of scans."""
