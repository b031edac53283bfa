"""Vehicles that fly and drive: their controllers, collisions, range sensors and rovers."""
