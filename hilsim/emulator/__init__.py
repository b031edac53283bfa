"""Specs, world, carrier and seed to packets; pure."""
