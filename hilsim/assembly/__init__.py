"""Assembly of a checked rig to the objects that run it."""
