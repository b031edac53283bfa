"""What carries the sensors: disturbance and platforms."""
