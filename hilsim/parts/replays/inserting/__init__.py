"""Objects in recorded packets: the noise of the unit that made a recording, and insertion offline."""
