"""Static triangles on a lattice, divided and sorted into tiles, so that float32 arithmetic near a tile's origin is exact.

Vertices are moved to the nearest point of a lattice of 2**-15 m (0.03 mm). Within 512 m of a tile's origin such coordinates and their
differences are float32 without rounding, so two triangles share exactly the same edge, even when they are in different tiles.
A scene within this range is one tile. In a larger one, triangles with an edge above ``EDGE_MAX_M`` are divided: each long edge at its
midpoint, which is the same for both neighbours.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import ConfigError
from hilsim.limits import CUT_PIECES

LATTICE_PER_M = 32768.0
TILE_M = 512.0
EDGE_MAX_M = 256.0
_MAX_PIECES_RATIO = 4
EXACT_M = 511.0  # below 512 by more than the rounding of a tile's centre to whole metres


def snap(position_m: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Nearest lattice point."""
    return np.rint(position_m * LATTICE_PER_M) / LATTICE_PER_M


def cut_long_edges(corners_m: npt.NDArray[np.float64], source: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Divide triangles ``float64[m, 3, 3]`` until no edge is longer than ``EDGE_MAX_M``; ``source`` ``int64[m]`` is repeated for the parts.

    The division of an edge depends on the edge alone, so neighbours have no gaps between them.

    Raises:
        ConfigError: the number of parts would exceed ``CUT_PIECES``.
    """
    most = max(CUT_PIECES.bound, _MAX_PIECES_RATIO * len(corners_m))
    longest = corners_m
    done: list[tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]] = []
    while len(corners_m):
        following = np.roll(corners_m, -1, axis=1)
        is_long = np.linalg.norm(following - corners_m, axis=2) > EDGE_MAX_M
        count = is_long.sum(axis=1)
        done.append((corners_m[count == 0], source[count == 0]))
        pieces_so_far = sum(len(rows) for _, rows in done) + int((count[count > 0] + 1).sum())
        if pieces_so_far > most:
            raise ConfigError(_too_large(longest, most))
        middle = snap(0.5 * (corners_m + following))
        pieces = []
        pieces_source = []
        for pattern in range(1, 8):
            flags = np.array([pattern & 1, pattern & 2, pattern & 4], dtype=bool)
            rows = np.flatnonzero((is_long == flags).all(axis=1))
            for piece in _pieces(corners_m[rows], middle[rows], flags):
                pieces.append(piece)
                pieces_source.append(source[rows])
        corners_m = np.concatenate(pieces)
        source = np.concatenate(pieces_source)
    return np.concatenate([corners for corners, _ in done]), np.concatenate([rows for _, rows in done])


def _too_large(corners_m: npt.NDArray[np.float64], most: int) -> str:
    length_m = np.linalg.norm(np.roll(corners_m, -1, axis=1) - corners_m, axis=2).max(axis=1)
    row = int(np.argmax(length_m))
    place = ", ".join(f"{value:.0f}" for value in corners_m[row, 0])
    return (
        f"scene: triangles longer than {EDGE_MAX_M:.0f} m must be cut into at most {most:,} pieces, got more: "
        f"the longest is {length_m[row] / 1000.0:,.1f} km long and starts at ({place})"
    )


def _pieces(corners: npt.NDArray[np.float64], middle: npt.NDArray[np.float64], is_long: npt.NDArray[np.bool_]) -> list[npt.NDArray[np.float64]]:
    """The two, three or four triangles from dividing ``corners`` ``[m, 3, 3]`` at the flagged edges; edge ``i`` goes from corner i to i + 1."""
    a, b, c = (corners[:, i] for i in range(3))
    ab, bc, ca = (middle[:, i] for i in range(3))
    outline = [a, *([ab] if is_long[0] else []), b, *([bc] if is_long[1] else []), c, *([ca] if is_long[2] else [])]
    if is_long.all():
        return [np.stack(piece, axis=1) for piece in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))]
    if is_long.sum() == 1:
        cut = int(np.argmax(is_long))
        outline = outline[cut + 1 :] + outline[: cut + 1]  # start at the midpoint of the divided edge: a fan from there has no empty triangle
    else:
        whole = int(np.argmin(is_long))
        outline = [
            (a, b, c)[(whole + 2) % 3],
            (ab, bc, ca)[(whole + 2) % 3],
            (a, b, c)[whole],
            (a, b, c)[(whole + 1) % 3],
            (ab, bc, ca)[(whole + 1) % 3],
        ]
        tip, left, first, second, right = outline
        return [np.stack(piece, axis=1) for piece in ((tip, left, right), (left, first, right), (first, second, right))]
    return [np.stack((outline[0], outline[i], outline[i + 1]), axis=1) for i in range(1, len(outline) - 1)]


def extent(points: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Lowest and highest coordinates of points ``float[..., 3]``; one axis at a time, which is ten times as fast as all at once."""
    columns = [points[..., axis] for axis in range(3)]
    return np.array([column.min() for column in columns]), np.array([column.max() for column in columns])


def grid_centre(corners_m: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Centre of all triangles, in whole metres: the origin of the grid of tiles."""
    return _centre(*extent(corners_m))


def _centre(low_m: npt.NDArray[np.float64], high_m: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    middle: npt.NDArray[np.float64] = np.rint(0.5 * (low_m + high_m))
    return middle


def sole_tile_centre(corners_m: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
    """Centre of the one tile of all triangles ``float64[m, 3, 3]``; None if they need several, since one would not be exact."""
    low, high = extent(corners_m)
    centre = _centre(low, high)
    return centre if max((high - centre).max(), (centre - low).max()) <= EXACT_M else None


def tile_centres(corners_m: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Centre of the tile of each triangle ``float64[m, 3, 3]``."""
    base = grid_centre(corners_m)
    centres: npt.NDArray[np.float64] = base + TILE_M * np.rint((corners_m.mean(axis=1) - base) / TILE_M)
    return centres
