"""Mesh, terrain and trajectory files: reading and checking."""
