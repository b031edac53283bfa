"""Hardware in the loop: the flight loop and its messages to and from the flight controller."""
