"""What carries the sensors: wobble and carriers."""
