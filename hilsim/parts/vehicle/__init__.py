"""Vehicles that fly: their controllers and collisions."""
