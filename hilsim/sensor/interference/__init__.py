"""Pulses of the other sensors of a rig, as a sensor's receiver meets them."""
