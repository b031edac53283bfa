"""Files that hold background maps: NPZ, pictures with their metadata, point clouds."""
