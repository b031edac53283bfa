"""How it flies: an estimate from what the sensors say, loops that steer by it, modes, and what it does of its own accord."""
