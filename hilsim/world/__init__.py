"""What a sensor sees, and how rays find it."""
