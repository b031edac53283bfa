"""What is in a capture: sensors, modes, rates, gaps, losses and clocks, found in one pass with bounded memory."""
