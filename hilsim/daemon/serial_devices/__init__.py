"""Devices that an autopilot reads over a serial port of their own."""
