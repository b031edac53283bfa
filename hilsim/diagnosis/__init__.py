"""What keeps a bench from working, and what to change: this machine, and the link to a flight controller."""
