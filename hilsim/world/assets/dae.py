"""COLLADA files through pycollada, which is imported only when such a file is used: triangles of the scene's nodes, with the nodes' names.

A node without a name has its parent's, as in gz-common's ``ColladaLoader.cc``. A skin has the shape in which it was bound to its skeleton, since animations are
ignored. Lights and cameras are ignored too.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import AssetError
from hilsim.limits import DAE_NODES, SCENE_TRIANGLES
from hilsim.world.assets.mesh_parts import MeshFile, MeshPart
from hilsim.world.scene.polygons import cut_polygons

_HEAD = 4096
_UNIT = re.compile(rb"""<unit\b[^>]*\bmeter\s*=\s*["']([^"']*)["']""")
_MATERIALS = re.compile(rb"<bind_material\b.*?</bind_material>", re.DOTALL)
_PLACING = re.compile(r"geometry|controller|skin|node", re.IGNORECASE)
"""Errors of pycollada about what places a mesh, not about its looks."""
_SHOWN_FAULTS = 3
_POLYGONS = frozenset({"triangles", "polylist", "polygons", "tristrips", "trifans"})


def _unit_m(path: Path, data: bytes) -> float:
    """Metres per unit of the file."""
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise AssetError(f"{path}: must be a COLLADA file without a document type, got one that defines entities")
    if b"<COLLADA" not in data[:_HEAD] or not data.rstrip().endswith(b"</COLLADA>"):
        raise AssetError(f"{path}: must be a whole COLLADA file, got {len(data)} bytes that do not begin and end as one (cut short?)")
    found = _UNIT.search(data)
    if found is None:
        return 1.0
    try:
        metres = float(found[1])
    except ValueError:
        metres = 0.0
    if not 1e-6 <= metres <= 1e6:
        raise AssetError(f"{path}: <unit meter> must be 1e-6 to 1e6, got {found[1].decode(errors='replace')}")
    return metres


def read_dae(path: Path, data: bytes) -> MeshFile:
    """Read a COLLADA file's scene, in metres.

    Raises:
        AssetError: the file is cut short or exceeds a limit; the message names it and the reason.
        Exception: any exception of pycollada.
    """
    import collada  # noqa: PLC0415 - a rig without such files does not need it

    unit_m = _unit_m(path, data)
    document = collada.Collada(BytesIO(_MATERIALS.sub(b"", data)), ignore=[collada.common.DaeError])  # which drops meshes of unknown materials
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
    return MeshFile(parts=tuple(parts), notes=tuple(_lost(path, document)))


def _lost(path: Path, document: Any) -> Iterator[str]:
    """A note if polygons that the file declares were not read, or not placed."""
    read = {primitive.xmlnode: len(primitive) for geometry in document.geometries for primitive in geometry.primitives}
    declared = {node: int(node.get("count") or 0) for node in document.xmlnode.getroot().iter() if str(node.tag).rpartition("}")[2] in _POLYGONS}
    lost = sum(max(count - read.get(node, 0), 0) for node, count in declared.items())
    faults = [str(error).splitlines()[0] for error in document.errors]
    broken = faults if lost else [fault for fault in faults if _PLACING.search(fault)]
    if lost or broken:
        reason = "; ".join(broken[:_SHOWN_FAULTS]) or "it has fewer, or some have holes (ph)"
        yield f"{path}: {lost} of {sum(declared.values())} polygons are not read, {len(broken)} instances of meshes may be missing: {reason}"


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
        if primitive.vertex is None or not len(primitive.vertex_index):
            continue
        corners = np.asarray(primitive.vertex, dtype=np.float64)[primitive.vertex_index.reshape(-1)]
        if isinstance(primitive, collada.polylist.Polylist):
            triangles, _ = cut_polygons(corners, np.asarray(primitive.vcounts, dtype=np.int64))
            yield corners[triangles.reshape(-1)]
        elif isinstance(primitive, collada.triangleset.TriangleSet):
            yield corners


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
