"""The bit-level checker of Velodyne streams."""
