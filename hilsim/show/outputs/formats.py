"""Names of the formats that a source can be exported to; light to import, for commands that only list them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

CLOUDS = ("pcd", "ply", "npz", "csv", "las", "laz")
"""Point clouds, which are also suffixes of files."""
FORMATS = (*CLOUDS, "mcap", "ros2", "kitti", "nuscenes")
Shapes = Literal["none", "steps", "scans"]
"""When the objects of a rig's scene are among its events."""
SHAPES: Mapping[str, Shapes] = MappingProxyType({"mcap": "steps", "nuscenes": "scans"})
"""The same, by the format that needs them."""
