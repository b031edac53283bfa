"""Triangles as kernels meet them: float32 about a tile's origin, as a corner and two edges, each with its box."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel

# A ray exactly within a face of a box (azimuth 0, a wall's edge) enters and leaves it at the same place, so boxes have a margin around their triangles.
_BOX_MARGIN_M = np.float32(2.0**-18)
_INFINITY = np.float32(np.inf)


@kernel
def _bound(corners_m: npt.NDArray[np.float64], origin_m: npt.NDArray[np.float64], boxes: npt.NDArray[np.float32]) -> None:
    for row in range(corners_m.shape[0]):
        for axis in range(3):
            a = np.float32(corners_m[row, 0, axis] - origin_m[axis])
            b = np.float32(corners_m[row, 1, axis] - origin_m[axis])
            c = np.float32(corners_m[row, 2, axis] - origin_m[axis])
            boxes[row, axis] = min(a, b, c) - _BOX_MARGIN_M
            boxes[row, 3 + axis] = max(a, b, c) + _BOX_MARGIN_M


@kernel
def _place(
    corners_m: npt.NDArray[np.float64], origin_m: npt.NDArray[np.float64], order: npt.NDArray[np.int32], placed: npt.NDArray[np.float32]
) -> None:
    for row in range(order.shape[0]):
        number = order[row]
        for axis in range(3):
            first = np.float32(corners_m[number, 0, axis] - origin_m[axis])
            placed[row, axis] = first
            placed[row, 3 + axis] = np.float32(corners_m[number, 1, axis] - origin_m[axis]) - first
            placed[row, 6 + axis] = np.float32(corners_m[number, 2, axis] - origin_m[axis]) - first


def triangle_boxes(corners_m: npt.NDArray[np.float64], origin_m: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Boxes ``float32[m, 6]`` (low x, y, z, high x, y, z) of triangles ``float64[m, 3, 3]``, relative to ``origin_m`` and with a margin."""
    boxes: npt.NDArray[Any] = np.empty((len(corners_m), 6), dtype=np.float32)
    _bound(np.ascontiguousarray(corners_m), origin_m, boxes)
    np.nextafter(boxes[:, :3], -_INFINITY, out=boxes[:, :3])
    np.nextafter(boxes[:, 3:], _INFINITY, out=boxes[:, 3:])
    return boxes


def place_triangles(corners_m: npt.NDArray[np.float64], origin_m: npt.NDArray[np.float64], order: npt.NDArray[np.int32]) -> npt.NDArray[np.float32]:
    """Triangles ``float32[m, 9]`` in ``order``, relative to ``origin_m``: a corner, and the edges from it to the other two."""
    placed = np.empty((len(order), 9), dtype=np.float32)
    _place(np.ascontiguousarray(corners_m), origin_m, order, placed)
    return placed
