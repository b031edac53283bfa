"""Devices on serial ports that an autopilot reads."""
