"""Flight code: a state estimate from the sensors, control loops, modes, and automatic actions."""
