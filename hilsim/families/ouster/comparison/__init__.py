"""Comparison of the statistics of two streams of Ouster sensors of one product line, profile and mode."""
