"""Other simulators and sources of poses."""
