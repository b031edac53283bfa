"""Platforms that carry sensors: tracks with a disturbance, and a multirotor with its own sensors."""
