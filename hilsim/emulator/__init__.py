"""Specs, world, platform and seed to packets; pure."""
