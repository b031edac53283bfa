"""Hardware in the loop: the flight loop, and what it sends and receives."""
