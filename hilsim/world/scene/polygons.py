"""Polygons and strips as triangles, for every reader of files: fans where these are right, else ear clipping by ``mapbox_earcut``."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_FANS = 4
"""Corners about which a fan is tried, which is enough for every polygon of four corners."""
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
    step = 1 + np.arange(len(polygon)) - np.repeat(np.cumsum(inner) - inner, inner)
    about, turned = np.zeros(len(counts), np.int64), np.arange(len(counts))
    for _ in range(_FANS):
        places = about[polygon, np.newaxis] + np.stack([np.zeros_like(step), step, step + 1], axis=-1)
        triangles = starts[polygon, np.newaxis] + places % counts[polygon, np.newaxis]
        turned, normals = _turned(corners_m[triangles], polygon, len(counts))
        if not len(turned):
            return triangles, polygon
        about[turned] += 1
    is_fan = ~np.isin(polygon, turned)
    spans = zip(starts[turned].tolist(), counts[turned].tolist(), _axes(normals[turned]), strict=True)
    clipped = [start + cut_rings([(corners_m[start : start + count] - corners_m[start]) @ axes]) for start, count, axes in spans]
    polygon = np.concatenate([polygon[is_fan], np.repeat(turned, [len(found) for found in clipped])])
    order = np.argsort(polygon, kind="stable")
    return np.concatenate([triangles[is_fan], *clipped])[order], polygon[order]


def _turned(corners_m: npt.NDArray[np.float64], polygon: npt.NDArray[np.int64], count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Polygons of which a triangle ``float64[m, 3, 3]`` of the fan faces the other way, and the normals of all, as long as twice the area."""
    with np.errstate(all="ignore"):  # corners that are not finite are rejected by the caller
        a, b, c = np.moveaxis(corners_m, 1, 0)
        facing = np.cross(b - a, c - a)
        normals = np.stack([np.bincount(polygon, weights=facing[:, axis], minlength=count) for axis in range(3)], axis=-1)
        along = np.einsum("ij,ij->i", facing, normals[polygon])
        turned = np.unique(polygon[along < -_OVERLAP_RATIO * np.einsum("ij,ij->i", normals, normals)[polygon]])
    return turned.astype(np.int64), normals.astype(np.float64)


def _axes(normals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Axes ``float64[p, 3, 2]`` of the planes to which normals are upright."""
    east = np.cross(normals, np.eye(3)[np.argmin(np.abs(normals), axis=1)])
    axes = np.stack([east, np.cross(normals, east)], axis=-1)
    return np.asarray(axes / np.linalg.norm(axes, axis=1, keepdims=True), dtype=np.float64)


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
