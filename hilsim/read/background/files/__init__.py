"""Files of background maps: NPZ, bitmaps with metadata, grey pictures, point clouds."""
