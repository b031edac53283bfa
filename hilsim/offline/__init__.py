"""Rigs without a clock: recordings and ground truth, as fast as the machine renders."""

START_UTC = "2026-01-01T00:00:00Z"
"""UTC of rig time 0 unless somebody says otherwise."""
