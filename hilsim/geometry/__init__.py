"""Frames, quaternions and pose tracks."""
