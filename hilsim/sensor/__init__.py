"""The lidar itself: head, clock, response and noise."""
