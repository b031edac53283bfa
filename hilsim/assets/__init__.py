"""Mesh, terrain and trajectory files, read and checked."""
