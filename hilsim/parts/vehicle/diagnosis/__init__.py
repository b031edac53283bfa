"""Diagnosis of a link to a flight controller, with advice."""
