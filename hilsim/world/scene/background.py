"""A background: depth map of a real place, captured by a stationary sensor, in the coordinates of its own encoder.

Cells are indexed by a beam's direction, not by its hit: columns are azimuth (rotating sensor) or image x (sensor with a window), rows
elevation or image z, row 0 the lowest. A cell contains the distance of the background surface in whole millimetres.

The layout follows Cepton's "AR simulator" note (https://developer.cepton.com/blog/AR_simulator): ``depth_map[ez][ex] = distance_mm``.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import inlined_kernel, kernel
from hilsim.errors import require
from hilsim.units import TURN_CDEG
from hilsim.world.geometry.poses import Pose

MAX_MM = 0xFFFFF
"""Largest distance that fits in 20 bits."""
BRIGHTEST = 0x3FF
"""Largest intensity that fits in 10 bits."""
VALID, INVALID = 3, 0
"""Flags of a cell with a surface, and of one without; 2 bits."""
NEAREST_USED_MM, MAX_USED_MM = 100, 200_000
"""A cell is used if its distance is strictly between these."""
OUTSIDE = -1
_LARGEST_SIDE = 65_536


@dataclass(frozen=True, kw_only=True)
class AzimuthGrid:
    """Grid of a rotating sensor: one row per channel; columns divide the turn evenly, starting at azimuth 0.

    Attributes:
        columns: Number of columns.
        elevation_deg: Elevation of each row, increasing.
    """

    columns: int
    elevation_deg: tuple[float, ...]

    def __post_init__(self) -> None:
        rising = all(low < high for low, high in zip(self.elevation_deg, self.elevation_deg[1:], strict=False))
        require(
            (1 <= self.columns <= _LARGEST_SIDE, f"columns must be 1 to {_LARGEST_SIDE}, got {self.columns}"),
            (1 <= len(self.elevation_deg) <= 256, f"elevation_deg must name 1 to 256 rows, got {len(self.elevation_deg)}"),
            (rising, "elevation_deg must increase from row to row"),
        )

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.elevation_deg)


@dataclass(frozen=True, kw_only=True)
class ImageGrid:
    """Grid of a sensor with a window: image coordinates ``x / y`` and ``z / y`` of a point (x right, y forward, z up).

    Attributes:
        columns: Number of columns.
        rows: Number of rows.
        x_min: Image x of the first column.
        x_max: Image x of the last column.
        z_min: Image z of the first row, the lowest.
        z_max: Image z of the last row.
    """

    columns: int
    rows: int
    x_min: float
    x_max: float
    z_min: float
    z_max: float

    def __post_init__(self) -> None:
        edges = (self.x_min, self.x_max, self.z_min, self.z_max)
        require(
            (2 <= self.columns <= _LARGEST_SIDE, f"columns must be 2 to {_LARGEST_SIDE}, got {self.columns}"),
            (2 <= self.rows <= _LARGEST_SIDE, f"rows must be 2 to {_LARGEST_SIDE}, got {self.rows}"),
            (all(map(math.isfinite, edges)), f"x_min, x_max, z_min and z_max must be finite, got {edges}"),
            (self.x_min < self.x_max, f"x_max must be above x_min, got {self.x_max} and {self.x_min}"),
            (self.z_min < self.z_max, f"z_max must be above z_min, got {self.z_max} and {self.z_min}"),
        )


Grid = AzimuthGrid | ImageGrid


@dataclass(frozen=True, kw_only=True, eq=False)
class BackgroundMap:
    """A captured depth map.

    Attributes:
        grid: Directions of the cells.
        distance_mm: ``uint32[rows, columns]``, 0 to ``MAX_MM``; 0 for no return.
        intensity: ``uint16[rows, columns]``, 0 to ``BRIGHTEST``: reflectivity byte of the sensor's packets.
        flags: ``uint8[rows, columns]``, 0 to 3: ``VALID`` or ``INVALID``.
        hit_count: ``uint32[rows, columns]``, number of returns in the cell; 0 if unknown.
        confidence: ``float32[rows, columns]``, 0 to 1: share of the cell's returns that belong to its surface.
        model: Name of the sensor's model as in its profile; empty if unknown.
        pose: Pose of the sensor during the capture, world from sensor; None if unknown.
        provenance: Origin of the map as JSON values: ``captures`` (name and SHA-256 of each), settings, statistics.
    """

    grid: Grid
    distance_mm: npt.NDArray[np.uint32]
    intensity: npt.NDArray[np.uint16]
    flags: npt.NDArray[np.uint8]
    hit_count: npt.NDArray[np.uint32]
    confidence: npt.NDArray[np.float32]
    model: str = ""
    pose: Pose | None = None
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = (self.grid.rows, self.grid.columns)
        arrays = {name: getattr(self, name) for name in ("distance_mm", "intensity", "flags", "hit_count", "confidence")}
        require(
            *((array.shape == shape, f"{name} must be {shape[0]} rows x {shape[1]} columns, got {array.shape}") for name, array in arrays.items())
        )
        require(
            (int(self.distance_mm.max()) <= MAX_MM, f"distance_mm must be at most {MAX_MM}, got {self.distance_mm.max()}"),
            (int(self.intensity.max()) <= BRIGHTEST, f"intensity must be at most {BRIGHTEST}, got {self.intensity.max()}"),
            (int(self.flags.max()) <= VALID, f"flags must be at most {VALID}, got {self.flags.max()}"),
        )

    @property
    def used(self) -> npt.NDArray[np.bool_]:
        """``bool[rows, columns]``: cells used by an overlay."""
        usable: npt.NDArray[np.bool_] = (self.flags == VALID) & (self.distance_mm > NEAREST_USED_MM) & (self.distance_mm < MAX_USED_MM)
        return usable


@inlined_kernel
def azimuth_column(columns: int, azimuth_cdeg: float) -> int:
    """Column of an ``AzimuthGrid`` for an azimuth (0.01 deg, clockwise, in any turn)."""
    turned_cdeg = azimuth_cdeg if 0.0 <= azimuth_cdeg < TURN_CDEG else azimuth_cdeg % TURN_CDEG  # the remainder is slow, and most azimuths need none
    return min(int(turned_cdeg * columns / TURN_CDEG), columns - 1)


@kernel
def image_cell(count: int, low: float, high: float, value: float) -> int:
    """Column (or row) of an ``ImageGrid`` for an image coordinate: ``u32(norm * (count - 1))`` as in the note; ``OUTSIDE`` beyond the edges."""
    norm = (value - low) / (high - low)
    if not 0.0 <= norm <= 1.0:
        return OUTSIDE
    return int(norm * (count - 1))
