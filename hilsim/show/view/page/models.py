"""Shapes that the page shows beside the points: the scene's meshes, and each sensor's field of view."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import require

_CIRCLE = 73
_AZIMUTH_CELLS = 72
_FULL = 68
"""Number of covered cells of azimuth from which the field of view counts as a whole turn."""


@dataclass(frozen=True, kw_only=True)
class SceneModel:
    """A mesh of the scene.

    Attributes:
        name: Name of the object.
        vertices: ``float32[n, 3]``, metres in the object's frame.
        triangles: ``int32[m, 3]``, indices of vertices.
        colour: Red, green and blue, 0 to 255.
        position_m: Position of the object's frame in the world.
        wxyz: Orientation of the object's frame in the world.
    """

    name: str
    vertices: npt.NDArray[np.float32]
    triangles: npt.NDArray[np.int32]
    colour: tuple[int, int, int] = (150, 150, 150)
    position_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    wxyz: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        """Check the shapes.

        Raises:
            ValueError: a shape is another, or a triangle names a vertex that does not exist.
        """
        indices = self.triangles.size == 0 or (int(self.triangles.min()) >= 0 and int(self.triangles.max()) < len(self.vertices))
        require(
            (self.vertices.ndim == 2 and self.vertices.shape[1:] == (3,), f"vertices must be [n, 3], got {list(self.vertices.shape)} of {self.name}"),
            (
                self.triangles.ndim == 2 and self.triangles.shape[1:] == (3,),
                f"triangles must be [m, 3], got {list(self.triangles.shape)} of {self.name}",
            ),
            (indices, f"triangles must name vertices 0 to {len(self.vertices) - 1} of {self.name}"),
        )


def field_of_view(points: npt.NDArray[Any], radius_m: float) -> npt.NDArray[np.float32]:
    """Edges of a sensor's field of view in the sensor frame, from what a scan covers.

    Args:
        points: ``hilsim.api.points.DECODED_DTYPE[n]``.
        radius_m: Distance of the edges from the sensor.

    Returns:
        ``float32[k, 2, 3]``, line segments; none for a scan without points.
    """
    if not points.size:
        return np.empty((0, 2, 3), np.float32)
    ground = np.hypot(points["x"], points["y"])
    elevation = np.arctan2(points["z"], ground)
    azimuth = np.arctan2(points["x"], points["y"])  # clockwise from forward
    covered = np.bincount(((azimuth / (2 * np.pi) + 0.5) * _AZIMUTH_CELLS).astype(np.int64) % _AZIMUTH_CELLS, minlength=_AZIMUTH_CELLS) > 0
    is_whole = int(covered.sum()) >= _FULL
    edges = (-np.pi, np.pi) if is_whole else (float(azimuth.min()), float(azimuth.max()))
    turn = np.linspace(*edges, _CIRCLE)
    lines = [_arc(turn, float(limit), radius_m) for limit in (elevation.min(), elevation.max())]
    segments = [np.stack([line[:-1], line[1:]], axis=1) for line in lines]
    sides = range(0, _CIRCLE - 1, (_CIRCLE - 1) // 4) if is_whole else (0, _CIRCLE - 1)
    segments += [np.array([[[0.0, 0.0, 0.0], line[side]]]) for line in lines for side in sides]
    return np.concatenate(segments).astype(np.float32)


def _arc(azimuth: npt.NDArray[np.float64], elevation: float, radius_m: float) -> npt.NDArray[np.float64]:
    flat = radius_m * np.cos(elevation)
    return np.stack([flat * np.sin(azimuth), flat * np.cos(azimuth), np.full(azimuth.size, radius_m * np.sin(elevation))], axis=1)


def track_segments(positions: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """``float32[n - 1, 2, 3]``, segments between positions ``float32[n, 3]``."""
    return np.stack([positions[:-1], positions[1:]], axis=1)
