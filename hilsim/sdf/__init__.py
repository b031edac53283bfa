"""Gazebo's worlds and models (SDF 1.4 to 1.12): what stands where, which lidars look at it, and what of a file is not supported."""
