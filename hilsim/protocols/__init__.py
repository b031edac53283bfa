"""Bytes, exactly: one file per format."""
