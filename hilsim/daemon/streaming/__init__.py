"""Sensors and replays on their way to the wire: threads that render and play, pacing."""
