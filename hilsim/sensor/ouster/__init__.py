"""Ouster lidars: their model and their settings."""
