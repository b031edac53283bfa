"""Sensor families: all that is a vendor's own is in one folder."""
