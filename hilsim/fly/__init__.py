"""Vehicles that fly: their controllers, collisions and range sensors."""
