"""Streams and captures, read: points, scans, measures and maps of places."""
