"""Gazebo's lidars as a part of a running rig."""
