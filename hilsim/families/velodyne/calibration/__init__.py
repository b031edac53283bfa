"""Figures of a unit, learned from captures of the still sensor: its lasers, its encoder, its clock; each figure with its samples, or the reason why it is not known."""
