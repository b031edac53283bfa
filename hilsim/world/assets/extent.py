"""Check that a file's vertices are near each other: a distant one is usually an error, and always expensive, because its triangles are divided into pieces of 256 m."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilsim.errors import AssetError
from hilsim.limits import COORDINATE_M, EXTENT_M


def check_extent(
    path: Path,
    vertices_m: npt.NDArray[np.float64],
    triangles: npt.NDArray[np.integer],
    name_vertex: Callable[[int], str],
    *,
    doubt: str = "a stray vertex?",
) -> None:
    """Reject vertices beyond the limits of coordinates, and vertices of triangles that are far from the median of all.

    Args:
        path: Path of the file, for messages.
        vertices_m: ``float64[n, 3]``, in metres.
        triangles: ``int[m, 3]``, valid rows of ``vertices_m``.
        name_vertex: Returns the name of a row of ``vertices_m``: ``vertex 3 (line 12)``.
        doubt: Probable cause, for the message.

    Raises:
        AssetError: such a vertex exists; the message names the first.
    """
    with np.errstate(invalid="ignore"):
        beyond = np.flatnonzero(~(np.abs(vertices_m) <= COORDINATE_M.bound).all(axis=1))
    if len(beyond):
        row = int(beyond[0])
        if not np.isfinite(vertices_m[row]).all():
            raise AssetError(f"{path}: {name_vertex(row)} must be finite, got {vertices_m[row].tolist()}")
        raise AssetError(f"{path}: {name_vertex(row)} must have coordinates of at most {COORDINATE_M.text}, got {tuple(vertices_m[row].tolist())}")
    used = np.zeros(len(vertices_m), dtype=np.bool_)
    used[triangles.reshape(-1)] = True
    rows = np.flatnonzero(used)
    if not len(rows):
        return
    away_m = np.linalg.norm(vertices_m[rows] - np.median(vertices_m[rows], axis=0), axis=1)
    farthest = int(np.argmax(away_m))
    if not EXTENT_M.holds(float(away_m[farthest])):
        name, away_km = name_vertex(int(rows[farthest])), away_m[farthest] / 1000.0
        raise AssetError(f"{path}: {name} must be at most {EXTENT_M.bound / 1000.0:g} km from the rest, got {away_km:,.0f} km: {doubt}")
