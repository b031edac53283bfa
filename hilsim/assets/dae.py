"""COLLADA files through pycollada, which is imported only when such a file is used: triangles of the scene's nodes, with the nodes' names.

A node without a name has its parent's, as in gz-common's ``ColladaLoader.cc``. A skin has the shape in which it was bound to its skeleton, since animations are
ignored. Lights and cameras are ignored too.
"""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.assets.mesh_parts import MeshPart
from hilsim.errors import AssetError
from hilsim.limits import DAE_NODES, SCENE_TRIANGLES


def read_dae(path: Path, data: bytes, unit_m: float) -> tuple[MeshPart, ...]:
    """Parts of a COLLADA file's scene, in metres.

    Args:
        path: Path of the file, for messages.
        data: Bytes of the file.
        unit_m: Metres per unit of the file.

    Raises:
        AssetError: the file exceeds a limit.
        Exception: any exception of pycollada.
    """
    import collada  # noqa: PLC0415 - a rig without such files does not need it

    document = collada.Collada(BytesIO(data), ignore=[collada.common.DaeError])
    parts: list[MeshPart] = []
    triangles = visited = 0
    waiting = [(node, np.eye(4), "") for node in reversed(document.scene.nodes)]
    while waiting:
        thing, matrix, name = waiting.pop()
        visited += 1
        DAE_NODES.enforce(visited, str(path), AssetError)
        geometry, at = _placed_geometry(thing, matrix)
        if geometry is not None:
            for corners in _corners(geometry):
                triangles += len(corners) // 3
                SCENE_TRIANGLES.enforce(triangles, str(path), AssetError)
                parts.append(_part((corners @ at[:3, :3].T + at[:3, 3]) * unit_m, name))
        elif isinstance(thing, collada.scene.Node):
            if isinstance(thing, collada.scene.NodeNode):
                thing, name = thing.node, ""
            name = thing.xmlnode.get("name") or name
            at = matrix @ thing.matrix
            waiting.extend((child, at, name) for child in reversed(thing.children or ()))
    return tuple(parts)


def _placed_geometry(thing: Any, matrix: npt.NDArray[np.float64]) -> tuple[Any, npt.NDArray[np.float64]]:
    """Geometry of a node and its pose; None if it has none."""
    import collada  # noqa: PLC0415 - as above

    if isinstance(thing, collada.scene.GeometryNode):
        return thing.geometry, matrix
    if isinstance(thing, collada.scene.ControllerNode) and isinstance(thing.controller, collada.controller.Skin):
        return thing.controller.geometry, np.asarray(
            thing.controller.bind_shape_matrix, dtype=np.float64
        )  # the skeleton determines its pose, not the node
    return None, matrix


def _corners(geometry: Any) -> Iterator[npt.NDArray[np.float64]]:
    """Corners of each list of triangles, three per triangle."""
    import collada  # noqa: PLC0415 - as above

    for primitive in geometry.primitives:
        listed = primitive.triangleset() if isinstance(primitive, collada.polylist.Polylist) else primitive
        if isinstance(listed, collada.triangleset.TriangleSet) and listed.vertex is not None and len(listed.vertex_index):
            yield np.asarray(listed.vertex, dtype=np.float64)[listed.vertex_index.reshape(-1)]


def _part(vertices: npt.NDArray[np.float64], name: str) -> MeshPart:
    count = len(vertices) // 3
    none = np.zeros(count, dtype=np.int64)
    return MeshPart(
        vertices=vertices,
        triangles=np.arange(3 * count, dtype=np.int64).reshape(-1, 3),
        material=none,
        names=("",),
        piece=none,
        pieces=(name,),
    )
