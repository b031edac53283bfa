"""Build the overlay that kernels sample from a captured background."""

from typing import Any

import numpy as np

from hilsim.emulator.families.base import LidarFamily
from hilsim.emulator.overlay import Overlay, OverlayRule
from hilsim.errors import require
from hilsim.scene.background import BackgroundMap, ImageGrid


def build_overlay(background: BackgroundMap, family: LidarFamily[Any], *, rule: OverlayRule, is_smooth: bool) -> Overlay:
    """Kernel-side background of a lidar, as one of its family.

    Raises:
        ValueError: the background is not of such a sensor, or has nothing in it; all faults at once.
    """
    grid, used, spec = background.grid, background.used, family.spec
    require(
        (
            not background.model or background.model == spec.model,
            f"a background must be of the sensor's model {spec.model}, got one of a {background.model}",
        ),
        (
            isinstance(grid, family.grid),
            f"a background for a {spec.model} must have cells of {family.grid_axes}, got the other kind",
        ),
        (bool(used.any()), "a background must have a valid cell between 0.1 m and 200 m, got none"),
    )
    x_min, x_max, z_min, z_max = (grid.x_min, grid.x_max, grid.z_min, grid.z_max) if isinstance(grid, ImageGrid) else (0.0, 1.0, 0.0, 1.0)
    return Overlay(
        rule=int(rule),
        is_smooth=is_smooth,
        x_min=x_min,
        x_max=x_max,
        z_min=z_min,
        z_max=z_max,
        row=family.background_rows(grid),
        range_m=np.where(used, background.distance_mm / 1000.0, np.inf).astype(np.float32),
        ratio=family.reflectivity_ratios()[np.minimum(background.intensity, 255)].astype(np.float32),
    )
