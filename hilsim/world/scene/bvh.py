"""Bounding volume hierarchy over boxes: binned surface-area heuristic (Wald 2007), built in one kernel; the lower levels of a large one on all cores.

A node is 64 bytes, one cache line, in one block of memory with two views: ``float32[n, 16]`` (bounds) and ``int32[n, 16]`` (links):

=======  ===================================================================================================
columns  meaning
=======  ===================================================================================================
0-5      box of child 0: low x, y, z, high x, y, z
6-11     box of child 1
12, 13   link of child 0, 1: a node row when >= 0, else a leaf of ``leaf_count(link)`` rows from ``leaf_first(link)``
14, 15   unused
=======  ===================================================================================================

In a tree of few boxes a node may have no second child: its box is a point that no ray reaches, and its leaf is empty.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, stage_kernel

LEAF_SIZE_MAX = 7
STACK_SIZE = 64
"""Largest depth of a tree, which is the stack size of a traversal. Below ``_SAH_DEPTH`` the build halves ranges by count, which guarantees the limit."""

_BINS = 16
_SAH_DEPTH = 36
_BOXES_MAX = 1 << 28  # four bits of a leaf's link are its size and sign; 36 + 28 levels fit the stack
_NOWHERE = np.float32(1e17)  # a coordinate that no ray reaches; times the greatest reciprocal of a direction (1e20) it is still a float32
_FAR = np.float32(3e38)
_PARTS = 8
_PARTS_MAX = (
    _PARTS * STACK_SIZE
)  # a level has fewer than ``_PARTS`` nodes with more rows than a part, and there is at most one part more than such nodes
_ROWS_FOR_THREADS = 1 << 15


class Tree(NamedTuple):
    """A built tree; its root is node 0.

    Attributes:
        bounds: ``float32[n, 16]``, boxes of the nodes.
        links: ``int32[n, 16]``, links of the nodes, in the same memory.
        order: ``int32[m]``, the box of each leaf row.
        depth: Number of levels.
    """

    bounds: npt.NDArray[np.float32]
    links: npt.NDArray[np.int32]
    order: npt.NDArray[np.int32]
    depth: int


_FIRST, _SECOND = constant(0), constant(1)


@kernel
def leaf_link(first: int, count: int) -> int:
    """Link of a leaf of ``count`` rows from ``first``."""
    return -(first * 8 + count) - 1


@kernel
def _link_child(
    bounds: npt.NDArray[np.float32], links: npt.NDArray[np.int32], node: int, slot: int, boxes: npt.NDArray[np.float32], begin: int, end: int
) -> None:
    """Write the bounding box and the leaf link of rows ``begin`` to ``end`` to a child slot."""
    base = 6 * slot
    for axis in range(3):
        low = _NOWHERE
        high = _NOWHERE
        if end > begin:
            low = _FAR
            high = -_FAR
        for row in range(begin, end):
            low = min(low, boxes[row, axis])
            high = max(high, boxes[row, 3 + axis])
        bounds[node, base + axis] = low
        bounds[node, base + 3 + axis] = high
    links[node, 12 + slot] = leaf_link(begin, end - begin)


@kernel
def _half_area(box: npt.NDArray[np.float32]) -> Any:
    x = box[3] - box[0]
    y = box[4] - box[1]
    z = box[5] - box[2]
    return x * y + y * z + z * x


@kernel
def _widen(box: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> None:
    for axis in range(3):
        box[axis] = min(box[axis], other[axis])
        box[3 + axis] = max(box[3 + axis], other[3 + axis])


@kernel
def _clear(box: npt.NDArray[np.float32]) -> None:
    for axis in range(3):
        box[axis] = _FAR
        box[3 + axis] = -_FAR


@stage_kernel
def _best_split(  # noqa: C901 - one kernel: splitting it would copy the scratch arrays' descriptors
    boxes: npt.NDArray[np.float32],
    begin: int,
    end: int,
    bins: npt.NDArray[np.float32],
    counts: npt.NDArray[np.int64],
    right: npt.NDArray[np.float32],
    box: npt.NDArray[np.float32],
) -> tuple[int, int, float, float]:
    """Cheapest splitting plane for rows ``begin`` to ``end``: (axis, first bin of the right side, low end, bins per metre); axis -1 if none divides them.

    ``bins`` ``float32[3, _BINS, 6]``, ``counts`` ``int64[3, _BINS]``, ``right`` ``float32[_BINS]``, ``box`` ``float32[6]`` are scratch.
    """
    _clear(box)
    for row in range(begin, end):
        for axis in range(3):
            centre = boxes[row, axis] + boxes[row, 3 + axis]
            box[axis] = min(box[axis], centre)
            box[3 + axis] = max(box[3 + axis], centre)
    low = (np.float64(box[0]), np.float64(box[1]), np.float64(box[2]))
    scale = (
        _BINS * 0.99999 / max(np.float64(box[3]) - low[0], 1e-30),
        _BINS * 0.99999 / max(np.float64(box[4]) - low[1], 1e-30),
        _BINS * 0.99999 / max(np.float64(box[5]) - low[2], 1e-30),
    )
    for axis in range(3):
        for b in range(_BINS):
            counts[axis, b] = 0
            _clear(bins[axis, b])
    for row in range(begin, end):
        for axis in range(3):
            b = int((np.float64(boxes[row, axis] + boxes[row, 3 + axis]) - low[axis]) * scale[axis])
            counts[axis, b] += 1
            _widen(bins[axis, b], boxes[row])
    best_cost = np.inf
    best_axis = -1
    best_bin = 0
    for axis in range(3):
        _clear(box)
        count = 0
        for b in range(_BINS - 1, 0, -1):
            count += counts[axis, b]
            _widen(box, bins[axis, b])
            right[b] = _half_area(box) * np.float32(count) if count > 0 else np.float32(0.0)
        _clear(box)
        count = 0
        for b in range(1, _BINS):
            count += counts[axis, b - 1]
            _widen(box, bins[axis, b - 1])
            if 0 < count < end - begin:
                cost = np.float64(_half_area(box)) * count + np.float64(right[b])
                if cost < best_cost:
                    best_cost = cost
                    best_axis = axis
                    best_bin = b
    if best_axis < 0:
        return -1, 0, 0.0, 0.0
    return best_axis, best_bin, low[best_axis], scale[best_axis]


@kernel
def _partition(
    boxes: npt.NDArray[np.float32], order: npt.NDArray[np.int32], begin: int, end: int, axis: int, split: int, low: float, scale: float
) -> int:
    """Move the rows whose bin on ``axis`` is below ``split`` to the front; returns the first row of the others."""
    front = begin
    back = end
    while front < back:
        centre = boxes[front, axis] + boxes[front, 3 + axis]
        if int((np.float64(centre) - low) * scale) < split:
            front += 1
            continue
        back -= 1
        for column in range(6):
            kept = boxes[front, column]
            boxes[front, column] = boxes[back, column]
            boxes[back, column] = kept
        number = order[front]
        order[front] = order[back]
        order[back] = number
    return front


@kernel
def _build(
    boxes: npt.NDArray[np.float32],
    order: npt.NDArray[np.int32],
    rows: tuple[int, int],
    depth: int,
    leaf_size: int,
    grain: int,
    bounds: npt.NDArray[np.float32],
    links: npt.NDArray[np.int32],
    later: npt.NDArray[np.int64],
) -> tuple[int, int, int]:
    """Build the tree of a range of rows, more than a leaf's, sorting ``boxes`` and ``order`` in place.

    Ranges of at most ``grain`` rows that need nodes of their own are left out and listed in ``later`` ``int64[n, 5]``: first row, end row, depth, parent
    node, slot of the parent. ``depth`` is the root's level. Returns (nodes used, deepest level, number of ranges left out).
    """
    bins = np.empty((3, _BINS, 6), dtype=np.float32)
    counts = np.empty((3, _BINS), dtype=np.int64)
    right = np.empty(_BINS, dtype=np.float32)
    box = np.empty(6, dtype=np.float32)
    waiting = np.empty((2 * STACK_SIZE + 2, 5), dtype=np.int64)  # as ``later``
    used, deepest, left_out = _FIRST, _FIRST, _FIRST
    top = 1
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3], waiting[0, 4] = rows[0], rows[1], depth, -1, 0
    while top > 0:
        top -= 1
        begin = waiting[top, 0]
        end = waiting[top, 1]
        level = waiting[top, 2]
        node = used
        used += 1
        deepest = max(deepest, level)
        if waiting[top, 3] >= 0:
            links[waiting[top, 3], 12 + waiting[top, 4]] = node
        middle = (begin + end) // 2
        if level < _SAH_DEPTH:
            axis, split, low, scale = _best_split(boxes, begin, end, bins, counts, right, box)
            if axis >= 0:
                middle = _partition(boxes, order, begin, end, axis, split, low, scale)
        _link_child(bounds, links, node, _FIRST, boxes, begin, middle)
        _link_child(bounds, links, node, _SECOND, boxes, middle, end)
        for slot in (1, 0):
            first = begin if slot == 0 else middle
            last = middle if slot == 0 else end
            if last - first <= leaf_size:
                continue
            if last - first <= grain:
                entry = later[left_out]
                left_out += 1
            else:
                entry = waiting[top]
                top += 1
            entry[0], entry[1], entry[2], entry[3], entry[4] = first, last, level + 1, node, slot
    return used, deepest, left_out


class _Part(NamedTuple):
    """Tree of a range of rows.

    Attributes:
        bounds: Nodes; leaves have rows of the whole.
        depth: Deepest level.
        later: ``int64[n, 5]``, ranges left out, as in ``_build``.
    """

    bounds: npt.NDArray[np.float32]
    depth: int
    later: npt.NDArray[np.int64]


def _part(boxes: npt.NDArray[np.float32], order: npt.NDArray[np.int32], rows: tuple[int, int], depth: int, leaf_size: int, grain: int = 0) -> _Part:
    """Build the tree of a range of rows, but for ranges of at most ``grain`` rows."""
    memory = empty_nodes(rows[1] - rows[0])
    later = np.empty((_PARTS_MAX, 5), dtype=np.int64)
    used, deepest, left_out = _build(boxes, order, rows, depth, leaf_size, grain, memory, memory.view(np.int32), later)
    return _Part(memory[:used], deepest, later[:left_out])


def _built(boxes: npt.NDArray[np.float32], leaf_size: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32], int]:
    """Nodes, order and depth of the tree of ``boxes``, which are sorted in place: first the upper levels, then what is below them, on all cores."""
    count = len(boxes)
    order = np.arange(count, dtype=np.int32)
    if count <= leaf_size:
        bounds = empty_nodes(1)
        _link_child(bounds, bounds.view(np.int32), 0, 0, boxes, 0, count)
        _link_child(bounds, bounds.view(np.int32), 0, 1, boxes, count, count)
        return bounds, order, 1
    top = _part(boxes, order, (0, count), 1, leaf_size, count // _PARTS if count >= _ROWS_FOR_THREADS else 0)
    ranges = top.later.tolist()
    if not ranges:
        return top.bounds, order, top.depth
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)), thread_name_prefix="tree") as pool:
        parts = list(pool.map(lambda each: _part(boxes, order, (each[0], each[1]), each[2], leaf_size), ranges))
    root = len(top.bounds)
    for (_, _, _, parent, slot), part in zip(ranges, parts, strict=True):
        links = part.bounds.view(np.int32)[:, 12:14]
        links += np.where(links >= 0, root, 0)
        top.bounds.view(np.int32)[parent, 12 + slot] = root
        root += len(part.bounds)
    bounds = empty_nodes(root)
    np.concatenate([top.bounds, *(part.bounds for part in parts)], out=bounds)
    return bounds, order, max(part.depth for part in (top, *parts))


def build_tree(boxes: npt.NDArray[np.float32], leaf_size: int = 4) -> Tree:
    """Build a tree over ``boxes`` ``float32[m, 6]`` (low x, y, z, high x, y, z), at least one.

    Raises:
        ValueError: there are no boxes or too many, a box is not finite, or the tree is deeper than a traversal's stack.
    """
    if len(boxes) == 0 or len(boxes) > _BOXES_MAX:
        raise ValueError(f"boxes must be 1 to {_BOXES_MAX}, got {len(boxes)}")
    if not 1 <= leaf_size <= LEAF_SIZE_MAX:
        raise ValueError(f"leaf_size must be 1 to {LEAF_SIZE_MAX}, got {leaf_size}")
    if not (np.abs(boxes) < _NOWHERE / 4).all():
        raise ValueError("boxes must be finite")
    bounds, order, depth = _built(np.array(boxes, dtype=np.float32, order="C"), leaf_size)
    if depth > STACK_SIZE:
        raise ValueError(f"tree must be at most {STACK_SIZE} deep, got {depth}")
    return Tree(bounds, bounds.view(np.int32), order, depth)


def empty_nodes(count: int) -> npt.NDArray[np.float32]:
    """Zeroed ``float32[count, 16]``, aligned to cache lines."""
    memory = np.zeros(16 * count + 16, dtype=np.float32)
    skip = (-memory.ctypes.data % 64) // 4
    return memory[skip : skip + 16 * count].reshape(count, 16)
