"""Pauses and seeks of a replay at exact times."""
