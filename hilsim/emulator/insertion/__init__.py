"""Synthetic objects in recorded data packets: each recorded firing is cast against the objects, and what is nearer replaces its bytes."""
