"""Scans, packets and poses in the files and messages of other tools."""
