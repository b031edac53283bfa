"""Physics of a multirotor: its body, what it touches, the hold of its position, and its sensors."""
