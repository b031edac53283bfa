"""Coordinate frames, rotations, poses and pose tracks."""
