"""The running vehicle: its thread, its link to the flight controller, its logs."""
