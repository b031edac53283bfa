"""Livox."""
