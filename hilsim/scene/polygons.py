"""Polygons and strips as triangles, for every reader of files: fans where these are right, else ear clipping by ``mapbox_earcut``."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_OVERLAP_RATIO = 1e-9
"""Share of a polygon's area by which a triangle of its fan may face the other way."""


def cut_polygons(corners_m: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Triangles that cover polygons, which may be concave but do not cross themselves, and the polygon of each triangle.

    Args:
        corners_m: ``float64[k, 3]``, corners of all polygons, one polygon after the other.
        counts: ``int64[p]``, corners of each; a polygon of fewer than three has no triangle.

    Returns:
        ``int64[m, 3]``, rows of ``corners_m``, and ``int64[m]``, rows of ``counts``, in order.
    """
    inner, starts = np.maximum(counts - 2, 0), np.cumsum(counts) - counts
    polygon = np.repeat(np.arange(len(counts), dtype=np.int64), inner)
    first = starts[polygon]
    second = first + 1 + np.arange(len(polygon)) - np.repeat(np.cumsum(inner) - inner, inner)
    triangles = np.stack([first, second, second + 1], axis=-1)
    if not (inner > 1).any():
        return triangles, polygon
    with np.errstate(all="ignore"):  # corners that are not finite are rejected by the caller
        a, b, c = np.moveaxis(corners_m[triangles], 1, 0)
        facing = np.cross(b - a, c - a)
        normals = np.stack([np.bincount(polygon, weights=facing[:, axis], minlength=len(counts)) for axis in range(3)], axis=-1)
        along = np.einsum("ij,ij->i", facing, normals[polygon])
        turned = np.unique(polygon[along < -_OVERLAP_RATIO * np.einsum("ij,ij->i", normals, normals)[polygon]])
    if not len(turned):
        return triangles, polygon
    is_fan = ~np.isin(polygon, turned)
    clipped = [starts[row] + _clipped(corners_m[starts[row] : starts[row] + counts[row]], normals[row]) for row in turned]
    polygon = np.concatenate([polygon[is_fan], np.repeat(turned, [len(found) for found in clipped])])
    order = np.argsort(polygon, kind="stable")
    return np.concatenate([triangles[is_fan], *clipped])[order], polygon[order]


def _clipped(corners_m: npt.NDArray[np.float64], normal: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Triangles of one polygon, seen against its normal."""
    east = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    axes = np.stack([east / np.linalg.norm(east), np.cross(normal, east) / np.linalg.norm(np.cross(normal, east))], axis=-1)
    return cut_rings([(corners_m - corners_m[0]) @ axes])


def cut_rings(rings: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.int64]:
    """Triangles ``int64[m, 3]`` of a plane area: rows of all rings together.

    Args:
        rings: ``float64[n, 2]`` each; the first is the outline, the others are holes in it.
    """
    from mapbox_earcut import triangulate_float64  # noqa: PLC0415 - most files have no such polygon

    points = np.concatenate(rings)
    ends = np.cumsum([len(ring) for ring in rings], dtype=np.uint32)
    return np.asarray(triangulate_float64(points, ends), dtype=np.int64).reshape(-1, 3)


def strip_triangles(corners: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Triangles ``int64[n - 2, 3]`` of a strip."""
    return np.stack([corners[:-2], corners[1:-1], corners[2:]], axis=-1)


def fan_triangles(corners: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Triangles ``int64[n - 2, 3]`` of a fan about its first corner."""
    return np.stack([np.broadcast_to(corners[:1], corners[2:].shape), corners[1:-1], corners[2:]], axis=-1)


def nested_rings(rings: Sequence[npt.NDArray[np.float64]]) -> list[list[npt.NDArray[np.float64]]]:
    """Outlines, each followed by its holes, of rings ``float64[n, 2]`` that do not cross: a ring within an odd number of others is a hole."""
    within = np.array([[one is not other and _is_within(one[0], other) for other in rings] for one in rings])
    depth = within.sum(axis=1)
    return [
        [ring, *(rings[hole] for hole in np.flatnonzero(within[:, row] & (depth == depth[row] + 1)).tolist())]
        for row, ring in enumerate(rings)
        if depth[row] % 2 == 0
    ]


def _is_within(point: npt.NDArray[np.float64], ring: npt.NDArray[np.float64]) -> bool:
    """Whether a ray from the point crosses the ring an odd number of times."""
    (x, y), after = ring.T, np.roll(ring, -1, axis=0)
    crosses = (y > point[1]) != (after[:, 1] > point[1])
    at = x[crosses] + (point[1] - y[crosses]) * (after[crosses, 0] - x[crosses]) / (after[crosses, 1] - y[crosses])
    return bool((at > point[0]).sum() % 2)
