"""Tools for other projects' tests: lidars for drivers.

Every name is loaded on first use.
"""

from typing import TYPE_CHECKING

from hilsim.lazy_imports import lazy_names

if TYPE_CHECKING:
    from hilsim.testing.factory import LidarFactory
    from hilsim.testing.lidars import Lidar, lidar
    from hilsim.testing.virtual import VirtualLidar

__all__ = ["Lidar", "LidarFactory", "VirtualLidar", "lidar"]

_HOMES = {
    "Lidar": "hilsim.testing.lidars:Lidar",
    "LidarFactory": "hilsim.testing.factory:LidarFactory",
    "VirtualLidar": "hilsim.testing.virtual:VirtualLidar",
    "lidar": "hilsim.testing.lidars:lidar",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
