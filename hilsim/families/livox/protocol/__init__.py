"""Livox packets."""
