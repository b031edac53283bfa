"""Cepton-style sensors."""
