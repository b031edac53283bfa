"""Velodyne."""
