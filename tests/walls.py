"""A wall whose distance is known, recorded with the profiles' own noise, and how far maps of it are off."""

import numpy as np

from hilsim.config.rig import load_rig
from hilsim.offline.record import record
from hilsim.read.background.part import GridSetting

WALL_M = 20.0
PROFILES = ("vlp16", "hr80w-like")
GRIDS = {"vlp16": GridSetting(), "hr80w-like": GridSetting(columns=160, rows=80)}
"""Of maps by profile."""
_WALL = """
name = "wall"
[platform]
kind = "fixed"
[[sensor]]
name = "lidar"
unit = "ideal"
profile = "{profile}"
[sensor.network]
source = "127.0.1.201"
destination = "127.0.0.1"
[[scene.box]]
name = "wall"
position_m = [{middle_m}, 0.0, 0.0]
size_m = [1.0, 60.0, 40.0]
"""


def wall_rig(profile="vlp16", wall_m=WALL_M):
    """A rig's text: one sensor that looks at a wall so far ahead; nothing is changed in the profile, so its noise is on."""
    return _WALL.format(profile=profile, middle_m=wall_m + 0.5)


def record_wall(path, profile, *, seconds, threads=1):
    """Write a capture of the wall, and its rig beside it."""
    rig = path.with_suffix(".toml")
    rig.write_text(wall_rig(profile))
    record(load_rig(rig), path, duration_ns=seconds * 10**9, utc_epoch_ns=0, batch_ms=100, threads=threads, progress=lambda _: None)


def _forward(grid):
    """How much of a unit vector through the middle of each cell points ahead, by the grid's definition."""
    if hasattr(grid, "elevation_deg"):
        azimuth = (np.arange(grid.columns) + 0.5) * 2.0 * np.pi / grid.columns
        elevation = np.radians(grid.elevation_deg)
        return np.cos(elevation)[:, np.newaxis] * np.cos(azimuth)
    x = grid.x_min + (np.arange(grid.columns) + 0.5) * (grid.x_max - grid.x_min) / (grid.columns - 1)
    z = grid.z_min + (np.arange(grid.rows) + 0.5) * (grid.z_max - grid.z_min) / (grid.rows - 1)
    return 1.0 / np.sqrt(1.0 + x**2 + z[:, np.newaxis] ** 2)


def wall_errors_mm(formed):
    """Distance of each cell that sees nothing but the wall, minus the wall's own along the cell's middle."""
    ahead = _forward(formed.grid)
    is_seen = formed.used & (ahead > 0.9) & (formed.hit_count >= 10) & (formed.confidence > 0.99)
    return formed.distance_mm[is_seen] - 1000.0 * WALL_M / ahead[is_seen]
