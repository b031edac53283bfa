"""Frames named once, rotations, poses and pose tracks."""
