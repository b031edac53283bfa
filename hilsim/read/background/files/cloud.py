"""Background maps as point clouds: one point for each used cell, at the cell's centre."""

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilsim.read.background.files.whole_file import replace_file
from hilsim.world.geometry.overlay_frames import matrix_from_pose
from hilsim.world.scene.background import AzimuthGrid, BackgroundMap, Grid

POINT_DTYPE = np.dtype([("position_m", "<f8", (3,)), ("intensity", "<u2")])
"""Vertex of the PLY file: ``double x y z``, because a world's coordinates do not fit float32, and ``ushort intensity``."""


def cell_directions(grid: Grid, row: npt.NDArray[np.intp], column: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """Unit vectors through the centres of cells in the sensor frame (x right, y forward, z up), ``float64[n, 3]``.

    Args:
        grid: Grid of the cells.
        row: ``intp[n]``, rows of the cells.
        column: ``intp[n]``, columns of the cells.

    A row of an ``AzimuthGrid`` has the elevation of its channel; the last row and column of an ``ImageGrid`` are the edge itself, as in
    ``image_cell``.
    """
    if isinstance(grid, AzimuthGrid):
        azimuth_rad = (column + 0.5) * (2.0 * np.pi / grid.columns)
        elevation_rad = np.radians(grid.elevation_deg)[row]
        level = np.cos(elevation_rad)
        return np.stack([level * np.sin(azimuth_rad), level * np.cos(azimuth_rad), np.sin(elevation_rad)], axis=-1)
    x = _image_centres(grid.columns, grid.x_min, grid.x_max)[column]
    z = _image_centres(grid.rows, grid.z_min, grid.z_max)[row]
    length = np.sqrt(x * x + 1.0 + z * z)
    return np.stack([x / length, 1.0 / length, z / length], axis=-1)


def map_points_m(background: BackgroundMap) -> npt.NDArray[np.float64]:
    """Points of the used cells of a map in the sensor frame, ``float64[n, 3]``, row by row from the lowest."""
    row, column = np.nonzero(background.used)
    distance_m = background.distance_mm[row, column] / 1000.0
    return cell_directions(background.grid, row, column) * distance_m[:, np.newaxis]


def world_points_m(background: BackgroundMap) -> npt.NDArray[np.float64]:
    """Points of the used cells of a map in the world, ``float64[n, 3]``.

    Raises:
        ValueError: the map has no pose.
    """
    if background.pose is None:
        raise ValueError("pose must be known for points in the world, got None")
    matrix = matrix_from_pose(background.pose)
    points: npt.NDArray[np.float64] = map_points_m(background) @ matrix[:3, :3].T + matrix[:3, 3]
    return points


def write_ply(background: BackgroundMap, path: Path) -> None:
    """Write a map as a binary little-endian PLY of points, in the world frame if the map has a pose, else in the sensor frame; a comment names the frame.

    Raises:
        AssetError: the file cannot be written.
    """
    in_world = background.pose is not None
    used = background.used
    points = np.empty(np.count_nonzero(used), POINT_DTYPE)
    points["position_m"] = world_points_m(background) if in_world else map_points_m(background)
    points["intensity"] = background.intensity[used]
    header = (
        "ply",
        "format binary_little_endian 1.0",
        f"comment hilsim background of {json.dumps(background.model)}",
        f"comment frame {'world: x east, y north, z up' if in_world else 'sensor: x right, y forward, z up'}; metres",
        f"element vertex {points.size}",
        "property double x",
        "property double y",
        "property double z",
        "property ushort intensity",
        "end_header\n",
    )
    replace_file(path, "\n".join(header).encode("ascii") + points.tobytes())


def _image_centres(count: int, low: float, high: float) -> npt.NDArray[np.float64]:
    share = np.minimum((np.arange(count) + 0.5) / (count - 1), 1.0)
    centres: npt.NDArray[np.float64] = low + share * (high - low)
    return centres
