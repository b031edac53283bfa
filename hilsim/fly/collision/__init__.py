"""Collisions of a vehicle: the surfaces around it, and its contacts with them."""
