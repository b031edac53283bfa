"""GPS receivers on serial ports."""
