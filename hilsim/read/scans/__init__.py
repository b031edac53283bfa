"""Packets of a sensor to scans, as they come: recognition, decoding, division into turns."""
