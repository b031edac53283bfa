"""The library of objects that hilsim makes itself, which a rig names as a mesh: ``file = "hilsim:saloon"``.

Each stands on z = 0 with the middle of its footprint at the origin, and looks along x. Sizes are those of ordinary vehicles, people and road furniture, rounded;
they are no measurement of one. A part has the name of a built-in material, except those whose material is the user's choice: ``body`` of a car, ``clothes`` of a
person, and ``face`` of a sign.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from hilsim.errors import AssetError
from hilsim.world.assets.mesh_parts import MeshFile, MeshPart
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.poses import mounting
from hilsim.world.scene import primitives
from hilsim.world.scene.materials import Material
from hilsim.world.scene.mesh import Mesh

LIBRARY = "hilsim:"
"""Start of ``file`` of an object of the library."""

_NONE = Material(name="none", reflectivity=0)
_TOLERANCE_M = 0.01
_LEVEL: Vector = (0.0, 0.0, 0.0)
_ON_ITS_SIDE: Vector = (90.0, 0.0, 0.0)
_TAPERED = np.array(
    [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
)


class Part(NamedTuple):
    """A piece of an object.

    Attributes:
        material: Name of its material in the file.
        mesh: Surface, about its own origin.
        position_m: Position of its origin.
        rotation_deg: Roll, pitch and yaw.
    """

    material: str
    mesh: Mesh
    position_m: Vector
    rotation_deg: Vector = _LEVEL


def is_in_library(file: str) -> bool:
    """Whether ``file`` of a mesh names an object of the library."""
    return file.startswith(LIBRARY)


def library_names() -> tuple[str, ...]:
    """Names of all objects of the library."""
    return tuple(_MODELS)


def library_mesh(file: str) -> MeshFile:
    """Contents of an object of the library, as of a mesh file.

    Args:
        file: ``hilsim:NAME``.

    Raises:
        AssetError: there is no object of this name.
    """
    name = file.removeprefix(LIBRARY)
    if name not in _MODELS:
        raise AssetError(f'file must be one of the library ({", ".join(LIBRARY + known for known in _MODELS)}), got "{file[:80]}"')
    return MeshFile(parts=tuple(_placed(part) for part in _MODELS[name]()))


def _placed(part: Part) -> MeshPart:
    mesh = part.mesh.placed(mounting(part.position_m, part.rotation_deg))
    rows = np.zeros(len(mesh.triangles), np.int64)
    return MeshPart(vertices=mesh.vertices_m, triangles=mesh.triangles.astype(np.int64), material=rows, names=(part.material,))


def _box(size_m: Vector) -> Mesh:
    return primitives.box(size_m, _NONE)


def _cylinder(radius_m: float, height_m: float) -> Mesh:
    return primitives.cylinder(radius_m, height_m, _NONE, _TOLERANCE_M)


def _capsule(radius_m: float, whole_m: float) -> Mesh:
    """Capsule of a length that includes its ends."""
    return primitives.capsule(radius_m, whole_m - 2.0 * radius_m, _NONE, _TOLERANCE_M)


def _tapered(base: tuple[float, float], top: tuple[float, float], width_m: tuple[float, float], height_m: float) -> Mesh:
    """Box whose top is another rectangle: from and to along x, and width, of the base and the top; it stands on z = 0."""
    corners = [
        (ends[side], (0.5 if left else -0.5) * width, height)
        for side in (0, 1)
        for left in (False, True)
        for ends, width, height in ((base, width_m[0], 0.0), (top, width_m[1], height_m))
    ]
    return Mesh.uniform(corners, _TAPERED, _NONE)


def _wheels(length_m: float, width_m: float, radius_m: float) -> Iterator[Part]:
    for x_m in (-0.29 * length_m, 0.30 * length_m):
        for side in (-1.0, 1.0):
            yield Part("rubber", _cylinder(radius_m, 0.2), (x_m, side * (0.5 * width_m - 0.11), radius_m), _ON_ITS_SIDE)


def _car(length_m: float, width_m: float, cabin: tuple[float, float], roof: tuple[float, float], height_m: float) -> tuple[Part, ...]:
    """Car of a body, a cabin of panes with a roof, four wheels and two number plates."""
    sill_m, belt_m, radius_m = 0.22, 0.82, 0.32
    glass_m = height_m - belt_m - 0.06
    body = _tapered((-0.5 * length_m, 0.5 * length_m), (-0.48 * length_m, 0.46 * length_m), (width_m, width_m - 0.08), belt_m - sill_m)
    plate = _box((0.02, 0.52, 0.11))
    roof_width_m = width_m - 0.45
    return (
        Part("body", body, (0.0, 0.0, sill_m)),
        Part("window", _tapered(cabin, roof, (width_m - 0.12, roof_width_m), glass_m), (0.0, 0.0, belt_m)),
        Part("body", _box((roof[1] - roof[0], roof_width_m, 0.06)), (0.5 * (roof[0] + roof[1]), 0.0, height_m - 0.03)),
        Part("number_plate", plate, (0.5 * length_m + 0.01, 0.0, 0.45)),
        Part("number_plate", plate, (-0.5 * length_m - 0.01, 0.0, 0.45)),
        *_wheels(length_m, width_m, radius_m),
    )


def _person(height_m: float, stride_deg: float) -> tuple[Part, ...]:
    """Person of capsules; legs and arms swing by ``stride_deg``."""
    leg_m, torso_m, arm_m, head_m = 0.48 * height_m, 0.36 * height_m, 0.34 * height_m, 0.065 * height_m
    swing = math.radians(stride_deg)
    hip_m = leg_m * math.cos(swing)
    shoulder_m = hip_m + 0.78 * torso_m
    parts = [
        Part("clothes", _capsule(0.095 * height_m, torso_m), (0.0, 0.0, hip_m + 0.42 * torso_m)),
        Part("skin", primitives.sphere(head_m, _NONE, _TOLERANCE_M), (0.0, 0.0, hip_m + 0.92 * torso_m + 1.2 * head_m)),
    ]
    for side in (-1.0, 1.0):
        for material, radius, length, top_m, y_m, angle in (
            ("clothes", 0.042 * height_m, leg_m, hip_m, 0.05 * height_m, side * swing),
            ("clothes", 0.028 * height_m, arm_m, shoulder_m, 0.125 * height_m, -side * swing),
        ):
            middle = (-0.5 * length * math.sin(angle), side * y_m, top_m - 0.5 * length * math.cos(angle))
            parts.append(Part(material, _capsule(radius, length), middle, (0.0, math.degrees(angle), 0.0)))
    return tuple(parts)


def _traffic_cone() -> tuple[Part, ...]:
    """Cone of 0.75 m on a square foot, with two retro-reflecting collars."""
    return (
        Part("rubber", _box((0.4, 0.4, 0.04)), (0.0, 0.0, 0.02)),
        Part("paint_red", primitives.cone(0.17, 0.71, _NONE, _TOLERANCE_M), (0.0, 0.0, 0.04 + 0.355)),
        *(Part("retro_sign", _cylinder(radius_m, 0.1), (0.0, 0.0, middle_m)) for radius_m, middle_m in ((0.108, 0.37), (0.06, 0.57))),
    )


def _sign(face: Mesh, height_m: float, rotation_deg: Vector) -> tuple[Part, ...]:
    """Sign on a pole of 60 mm, whose face looks along x."""
    return (
        Part("metal", _cylinder(0.03, height_m + 0.3), (0.0, 0.0, 0.5 * (height_m + 0.3))),
        Part("face", face, (0.05, 0.0, height_m), rotation_deg),
    )


_MODELS: dict[str, Callable[[], tuple[Part, ...]]] = {
    "saloon": lambda: _car(4.7, 1.82, (-1.75, 0.95), (-1.15, 0.25), 1.45),
    "hatchback": lambda: _car(4.0, 1.75, (-1.95, 0.85), (-1.55, 0.2), 1.48),
    "van": lambda: _car(5.3, 2.0, (-2.55, 1.95), (-2.5, 1.3), 2.1),
    "person": lambda: _person(1.75, 0.0),
    "person-walking": lambda: _person(1.75, 25.0),
    "child-walking": lambda: _person(1.2, 25.0),
    "traffic-cone": _traffic_cone,
    "round-sign": lambda: _sign(_cylinder(0.3, 0.02), 2.2, (0.0, 90.0, 0.0)),
    "square-sign": lambda: _sign(_box((0.02, 0.6, 0.6)), 2.2, _LEVEL),
    "diamond-sign": lambda: _sign(_box((0.02, 0.5, 0.5)), 2.2, (45.0, 0.0, 0.0)),
}
