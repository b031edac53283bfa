"""Families of lidars: whose packets, and everything on the Python side that follows from it."""
