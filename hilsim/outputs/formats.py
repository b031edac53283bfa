"""Names of the formats that a source can be exported to; without imports, for commands that only list them."""

CLOUDS = ("pcd", "ply", "npz", "csv", "las", "laz")
"""Point clouds, which are also suffixes of files."""
FORMATS = (*CLOUDS, "mcap", "ros2", "kitti", "nuscenes")
