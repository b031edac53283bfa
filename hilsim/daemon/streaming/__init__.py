"""Sensors and replays as parts of the daemon: which threads run, how far ahead, with how many rays."""
