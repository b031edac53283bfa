"""Bit-level checker: it finds what a decoder does not notice, but a real sensor would never send."""
