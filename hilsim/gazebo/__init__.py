"""Lidars as Gazebo has them: their rays, ranges, noise and times, and what is published of them."""
