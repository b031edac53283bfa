"""Velodyne packets and models."""
