"""``<geometry>`` of a collision or a visual."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hilsim.geometry.poses import Pose
from hilsim.limits import COORDINATE_M, SIZE_M
from hilsim.sdf.elements import Element
from hilsim.sdf.specs import SdfShape

FindFile = Callable[[Element, str], Path | None]
"""The file that an element names by a URI; None, with a fault of the element, where there is none."""

_NONE = (0.0, 0.0, 0.0)
_SHORTEST_NORMAL = 1e-6


def read_shape(holder: Element, name: str, pose: Pose, find_file: FindFile) -> SdfShape | None:
    """The shape of a collision or visual; None, with a fault or a note, where it has none that is supported; ``<empty/>`` needs no note.

    Args:
        holder: The ``<collision>`` or ``<visual>``.
        name: Its scoped name.
        pose: Its pose in the world.
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
    if make is None:
        shape.unsupported(f"<{shape.tag}> of {name} is not supported")
        return None
    made = make(shape, find_file)
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


def _plane(shape: Element, _find: FindFile) -> Values | None:
    normal, size = shape.vector("normal", (0.0, 0.0, 1.0)), shape.vector("size", (1.0, 1.0))
    length = math.hypot(*normal)
    if not _SHORTEST_NORMAL <= length < math.inf:
        shape.fault(f"<normal> must not be zero, nor without end, got {' '.join(f'{value:g}' for value in normal)}")
        return None
    normal = tuple(value / length for value in normal)
    return {"kind": "plane", "normal": normal, "size_m": (*size, 0.0)} if _sized(shape, "size", *size) else None


def _mesh(shape: Element, find_file: FindFile) -> Values | None:
    file, scale = find_file(shape, shape.string("uri")), shape.vector("scale", (1.0, 1.0, 1.0))
    submesh = shape.child("submesh")
    part = {} if submesh is None else {"submesh": submesh.string("name"), "is_centred": submesh.boolean("center", default=False)}
    if file is None or not all(scale):
        if not all(scale):
            shape.fault(f"<scale> must not be zero, got {scale}")
        return None
    return {"kind": "mesh", "file": file, "scale": scale, **part}


def _heightmap(shape: Element, find_file: FindFile) -> Values | None:
    file, size, position = find_file(shape, shape.string("uri")), shape.vector("size", (1.0, 1.0, 1.0)), shape.vector("pos", _NONE)
    if any(position):
        shape.unsupported("<pos> of a heightmap is not supported: give the collision a pose")
    return {"kind": "heightmap", "file": file, "size_m": size} if file is not None and _sized(shape, "size", *size) else None


def _sized(shape: Element, tag: str, *values: float) -> bool:
    """Whether sizes are such that something can be seen; else they are a fault."""
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
