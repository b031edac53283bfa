"""Cepton packets."""
