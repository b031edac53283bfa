"""The optical path: the beam as rays, the window, rain, snow, fog and dust."""
