"""The nearest triangle of one geometry: a float32 traversal of its tree, nearer child first. The same source for the CPU and for CUDA."""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.world.render.intersect import INFINITY, Single, box_entry, reciprocal, triangle_distance


@kernel
def closest_triangle(
    bounds: npt.NDArray[np.float32],
    links: npt.NDArray[np.int32],
    corners: npt.NDArray[np.float32],
    root: int,
    ox: Single,
    oy: Single,
    oz: Single,
    dx: Single,
    dy: Single,
    dz: Single,
    limit: Single,
    stack: npt.NDArray[np.int32],
    base: int,
) -> tuple[Single, int]:
    """Nearest triangle closer than ``limit`` in the tree at ``root``: (distance, row), or (``limit``, -1).

    Args:
        bounds: ``float32[n, 16]``, nodes as in ``world.scene.bvh``; ``links`` is ``int32[n, 16]`` of the same memory.
        corners: ``float32[m, 9]``, corners of the triangles.
        root: Row of the root node.
        ox: Origin of the ray in the geometry's frame, x (then ``oy``, ``oz``); ``dx`` is the unit direction.
        limit: Maximum distance. Of triangles at the same distance the one of the lowest row is returned.
        stack: ``int32[s]``, scratch with room for ``STACK_SIZE`` entries from ``base``.
        base: First free entry of ``stack``.
    """
    ix = reciprocal(dx)
    iy = reciprocal(dy)
    iz = reciprocal(dz)
    best = limit
    found = -1
    top = base
    link = np.int64(root)
    while True:
        if link >= 0:
            node = np.uintp(link)
            near0 = box_entry(bounds, node, 0, ox, oy, oz, ix, iy, iz, best)
            near1 = box_entry(bounds, node, 6, ox, oy, oz, ix, iy, iz, best)
            if near0 <= near1:
                if near1 < INFINITY:
                    stack[top] = links[node, 13]
                    top += 1
                if near0 < INFINITY:
                    link = np.int64(links[node, 12])
                    continue
            else:
                if near0 < INFINITY:
                    stack[top] = links[node, 12]
                    top += 1
                link = np.int64(links[node, 13])
                continue
        else:
            code = -1 - link
            first = code >> 3
            for row in range(first, first + (code & 7)):
                t = triangle_distance(corners, np.uintp(row), ox, oy, oz, dx, dy, dz)
                if t < best or (t == best and row < found):
                    best = t
                    found = row
        if top == base:
            return best, found
        top -= 1
        link = np.int64(stack[top])
