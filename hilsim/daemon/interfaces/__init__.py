"""Interfaces that sensors serve at their own addresses."""
