"""Inspection of captures: sensors, modes, rates, gaps, losses and clocks, found in one pass with bounded memory."""
