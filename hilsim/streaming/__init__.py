"""Render threads: each renders one sensor's packets ahead of their deadlines into rings from which they are sent."""
