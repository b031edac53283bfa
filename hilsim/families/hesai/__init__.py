"""Hesai lidars."""
