"""Building everything from a rig and running it."""
