"""Platforms that carry sensors: tracks with a disturbance, live poses, and the wind around them."""
