"""Differences between units of a model: the encoder, the lasers, the clock; drawn by chance or learned from a capture."""
