"""A rig in lockstep: the other side releases each stretch of rig time."""
