"""``<geometry>`` of a collision or a visual."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hilsim.limits import COORDINATE_M, FACE_CORNERS, SIZE_M
from hilsim.world.geometry.poses import Pose
from hilsim.world.sdf.elements import Element, shown
from hilsim.world.sdf.specs import SdfShape

FindFile = Callable[[Element, str], tuple[Path | None, str]]
"""Function that returns the file of an element's URI, or None and the reason."""

_NONE = (0.0, 0.0, 0.0)
_SHORTEST_NORMAL = 1e-6
_CLOSED_M, _CORNERS = 1e-4, 3


def read_shape(holder: Element, name: str, pose: Pose, find_file: FindFile) -> SdfShape | None:
    """Read the shape of a collision or visual; None, with a fault or a note, if it has no supported one; ``<empty/>`` needs no note.

    Args:
        holder: Element ``<collision>`` or ``<visual>``.
        name: Scoped name.
        pose: Pose in the world.
        find_file: Finds meshes and heightmaps.
    """
    geometry = holder.child("geometry")
    if geometry is None:
        holder.unsupported(f"<{holder.tag}> has no <geometry>: {name} is left out")
        return None
    shape = next(iter(geometry.children), None)
    if shape is None or shape.tag == "empty":
        return None
    make = _SHAPES.get(shape.tag)
    if shape.tag != "polyline" and make is None:
        shape.unsupported(f"<{shape.tag}> of {name} is not supported")
        return None
    made = _polylines(list(geometry.all("polyline"))) if make is None else make(shape, find_file)
    return None if made is None else SdfShape(name=name, pose=pose, where=shape.where, **made)


Values = dict[str, Any]


def _box(shape: Element, _find: FindFile) -> Values | None:
    size = shape.vector("size", (1.0, 1.0, 1.0))
    return {"kind": "box", "size_m": size} if _sized(shape, "size", *size) else None


def _sphere(shape: Element, _find: FindFile) -> Values | None:
    radius = shape.number("radius", 1.0)
    return {"kind": "sphere", "radii_m": (radius,) * 3} if _sized(shape, "radius", radius) else None


def _ellipsoid(shape: Element, _find: FindFile) -> Values | None:
    radii = shape.vector("radii", (1.0, 1.0, 1.0))
    return {"kind": "ellipsoid", "radii_m": radii} if _sized(shape, "radii", *radii) else None


def _round(shape: Element, _find: FindFile) -> Values | None:
    default = 0.5 if shape.tag in {"capsule", "cone"} else 1.0
    radius, length = shape.number("radius", default), shape.number("length", 1.0)
    is_sound = _sized(shape, "radius", radius) and _sized(shape, "length", length)
    return {"kind": shape.tag, "radii_m": (radius,) * 3, "length_m": length} if is_sound else None


def _polylines(shapes: list[Element]) -> Values | None:
    """A prism of all polylines of a geometry, with the height of the first, as in gz-common (``MeshManager.cc``)."""
    rings, height = [], shapes[0].number("height", 1.0)
    is_sound = _sized(shapes[0], "height", height)
    for shape in shapes:
        ring = shape.pairs("point")
        if len(ring) > 1 and math.dist(ring[0], ring[-1]) <= _CLOSED_M:
            ring = ring[:-1]
        if not _CORNERS <= len(ring) <= FACE_CORNERS.bound or not all(COORDINATE_M.holds(abs(value)) for point in ring for value in point):
            shape.fault(f"<polyline> must have 3 to {FACE_CORNERS.bound:,} points within {COORDINATE_M.text}, got {len(ring)}")
            is_sound = False
        rings.append(ring)
    return {"kind": "polyline", "rings_m": tuple(rings), "length_m": height} if is_sound else None


def _plane(shape: Element, _find: FindFile) -> Values | None:
    normal, size = shape.vector("normal", (0.0, 0.0, 1.0)), shape.vector("size", (1.0, 1.0))
    length = math.hypot(*normal)
    if not _SHORTEST_NORMAL <= length < math.inf:
        shape.fault(f"<normal> must not be zero, nor without end, got {' '.join(f'{value:g}' for value in normal)}")
        return None
    normal = tuple(value / length for value in normal)
    return {"kind": "plane", "normal": normal, "size_m": (*size, 0.0)} if _sized(shape, "size", *size) else None


def _mesh(shape: Element, find_file: FindFile) -> Values | None:
    scale, submesh = shape.vector("scale", (1.0, 1.0, 1.0)), shape.child("submesh")
    part: Values = {}
    if submesh is not None:
        part = {"submesh": submesh.string("name"), "is_centred": submesh.boolean("center", default=False)}
        if not part["submesh"]:
            submesh.fault("<submesh> must have a <name>")
    if not all(scale):
        shape.fault(f"<scale> must not be zero, got {scale}")
        return None
    optimization = shape.attributes.get("optimization", "")
    if optimization not in {"", "none"}:
        shape.unsupported(f'optimization "{shown(optimization)}" of a <mesh> is not supported: it is as its file has it')
    return {"kind": "mesh", "scale": scale, **part, **_file(shape, find_file)}


def _heightmap(shape: Element, find_file: FindFile) -> Values | None:
    size, position = shape.vector("size", (1.0, 1.0, 1.0)), shape.vector("pos", _NONE)
    sampling = shape.count("sampling", 1)
    if not sampling:
        shape.fault("<sampling> must be at least 1, got 0")
    if not all(COORDINATE_M.holds(abs(value)) for value in (*position, size[2])):
        shape.fault(f"<pos> and the height of a <heightmap> must be at most {COORDINATE_M.text}, got {position} and {size[2]:g}")
        return None
    if not (sampling and _sized(shape, "size", *size[:2])):
        return None
    return {"kind": "heightmap", "size_m": size, "position_m": position, "sampling": sampling, **_file(shape, find_file)}


def _file(shape: Element, find_file: FindFile) -> Values:
    uri = shape.string("uri")
    file, missing = find_file(shape, uri)
    if not uri:
        shape.fault(missing)
    return {"uri": uri, "file": file, "missing": f"{shape.where}: {missing}" if missing else ""}


def _sized(shape: Element, tag: str, *values: float) -> bool:
    """Whether sizes are positive; otherwise a fault is recorded."""
    rule = SIZE_M if not all(SIZE_M.holds(value) for value in values) else COORDINATE_M
    if all(rule.holds(value) for value in values):
        return True
    found = shape.child(tag)
    got = " ".join(f"{value:g}" for value in values)
    (found or shape).fault(f"<{tag}> of a <{shape.tag}> must be at {'least' if rule is SIZE_M else 'most'} {rule.text}, got {got}")
    return False


_SHAPES: dict[str, Callable[[Element, FindFile], Values | None]] = {
    "box": _box,
    "sphere": _sphere,
    "ellipsoid": _ellipsoid,
    "cylinder": _round,
    "capsule": _round,
    "cone": _round,
    "plane": _plane,
    "mesh": _mesh,
    "heightmap": _heightmap,
}
