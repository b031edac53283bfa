"""Lidar models: head, mirror, clock, beam, receiver and noise."""
