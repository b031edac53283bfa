"""Sensors and replays as parts of the daemon: their threads, leads and numbers of rays."""
