"""Poses from other programs (simulators, autopilots, motion capture), each format read into the same snapshots."""
