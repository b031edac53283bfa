"""Poses from another simulator as a part of the running rig."""
