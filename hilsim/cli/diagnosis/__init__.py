"""Diagnosis of problems of a bench, with advice: this machine, and the link to a flight controller."""
