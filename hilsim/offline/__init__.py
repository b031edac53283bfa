"""Rigs without a clock: recordings and ground truth, as fast as the machine renders."""
