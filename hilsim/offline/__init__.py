"""Rigs without a real-time clock: recordings and ground truth, as fast as the machine renders."""
