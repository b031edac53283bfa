"""What light passes on its way: the beam as rays, the window, rain, snow, fog and dust."""
