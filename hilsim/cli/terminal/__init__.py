"""What a person at a terminal sees while a command works, and the keys that it takes."""
