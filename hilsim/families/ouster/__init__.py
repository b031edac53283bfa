"""Ouster."""
