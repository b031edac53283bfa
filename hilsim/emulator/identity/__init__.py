"""From a model and a seed to one unit of it: what is learned from a capture, and for the rest what is drawn."""
