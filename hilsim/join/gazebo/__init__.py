"""Lidars with the behaviour of Gazebo's: rays, ranges, noise and times, and publication of their scans."""
