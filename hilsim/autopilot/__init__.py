"""Hardware in the loop: the loop that flies a vehicle under a flight controller, and what it sends and receives."""
