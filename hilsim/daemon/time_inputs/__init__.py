"""Pulses and sentences from outside at the GPS inputs of the rig's Velodynes."""
