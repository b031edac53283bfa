"""Bytes of a Hesai on the wire."""
