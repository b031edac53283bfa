"""The demo street: houses, cars, furniture and what moves, from a seed."""
