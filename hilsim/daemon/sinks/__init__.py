"""Sinks that receive copies of sent packets, each with its own queue and thread."""
