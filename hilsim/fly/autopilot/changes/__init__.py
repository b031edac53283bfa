"""Timed changes of a vehicle, as the flight loop takes them."""
