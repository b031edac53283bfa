"""Bytes, exactly: one file a format."""
