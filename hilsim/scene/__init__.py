"""The world as arrays."""
