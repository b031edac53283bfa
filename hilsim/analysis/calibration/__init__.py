"""What captures of a still sensor say about the unit: its lasers, its encoder, its clock; each figure with its samples, or the reason why it is not known."""
