"""Gazebo's worlds and models (SDF 1.4 to 1.12): their shapes with poses, their lidars, and unsupported parts of a file."""
