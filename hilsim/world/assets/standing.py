"""Objects that stand on the ground of a scene.

The ground under an object is looked for straight below and above its position: among the surfaces of still objects that face up and have room
for the object above them, the one nearest to the scene's zero height. So an object is put on the floor of a hall and not on its roof, on the
pavement and not on a tree, and on a slab that covers the ground. Objects that stand on the ground themselves are no ground. A scene with a captured
background has the plane z = 0 besides.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hilsim.errors import ConfigError
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import matrix_from_quaternion
from hilsim.world.render.cpu import cast_rays
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.specs import SceneSpec
from hilsim.world.scene.world import SceneObject, World, build_world

_STEP_M = 2e-3
"""Twice the largest error of a range: a ray that goes on from a surface starts so far below it."""
_MAX_SURFACES = 1000


def with_standing(objects: Sequence[SceneObject], spec: SceneSpec) -> list[SceneObject]:
    """The objects of a scene, those that stand on the ground lowered or lifted to it.

    Raises:
        ConfigError: an object has no ground; the message names all.
    """
    if not any(thing.stands_on_ground for thing in objects):
        return list(objects)
    world = build_world(objects, frozenset(number for number, thing in enumerate(objects) if not _is_ground(thing)))
    placed, faults = [], []
    for thing in objects:
        try:
            placed.append(stood(thing, world, objects, spec) if thing.stands_on_ground else thing)
        except ConfigError as error:
            faults.append(str(error))
    if faults:
        raise ConfigError("\n".join(faults))
    return placed


def stood(thing: SceneObject, world: World, objects: Sequence[SceneObject], spec: SceneSpec) -> SceneObject:
    """An object whose lowest point is as high above the ground as its position is above the scene's zero.

    Args:
        thing: The object, without a motion.
        world: World of the other objects.
        objects: The other objects, by their ids in the world.
        spec: Table ``[scene]`` of the rig.

    Raises:
        ConfigError: there is no ground at its position.
    """
    pose = thing.placement
    if not isinstance(pose, Pose):
        raise TypeError("placement of an object with stand_on_ground must be a Pose")
    x_m, y_m, z_m = pose.position_m
    above_m = z_m - spec.origin_m[2]
    lowest_m, highest_m = _span_m(thing.mesh, pose)
    room_m = above_m + highest_m - lowest_m
    ground_m = _ground_m(world, objects, (x_m, y_m, spec.origin_m[2]), room_m, has_plane=bool(spec.background))
    if ground_m is None:
        raise ConfigError(
            f"{thing.name}: stand_on_ground requires a still surface at x = {x_m:g}, y = {y_m:g} that faces up, with {room_m:.2f} m of room above it, got none"
        )
    return replace(thing, placement=Pose(position_m=(x_m, y_m, ground_m + above_m + z_m - lowest_m), orientation=pose.orientation))


def _is_ground(thing: SceneObject) -> bool:
    return isinstance(thing.placement, Pose) and not thing.stands_on_ground


def _span_m(mesh: Mesh, pose: Pose) -> tuple[float, float]:
    """Lowest and highest z of a mesh at a pose."""
    z_m = mesh.vertices_m @ matrix_from_quaternion(pose.orientation)[2] + pose.position_m[2]
    return float(z_m.min()), float(z_m.max())


def _ground_m(world: World, objects: Sequence[SceneObject], zero_m: Vector, room_m: float, *, has_plane: bool) -> float | None:
    """Height of the ground in the world; None without one."""
    found = _surfaces(world, objects, zero_m[0], zero_m[1])
    if has_plane:
        found = sorted([*found, (zero_m[2], True)], reverse=True)
    ceilings_m = [np.inf, *(height_m for height_m, _ in found)]
    floors_m = [
        height_m
        for (height_m, faces_up), ceiling_m in zip(found, ceilings_m, strict=False)
        if faces_up and ceiling_m - height_m >= max(room_m - _STEP_M, _STEP_M)
    ]
    return min(floors_m, key=lambda height_m: abs(height_m - zero_m[2]), default=None)


def _surfaces(world: World, objects: Sequence[SceneObject], x_m: float, y_m: float) -> list[tuple[float, bool]]:
    """Height and facing (up or not) of each surface on a vertical line, the highest first."""
    spans_m = [_span_m(thing.mesh, thing.placement) for thing in objects if isinstance(thing.placement, Pose)]
    if not spans_m:
        return []
    from_m, until_m = max(span[1] for span in spans_m) + 1.0, min(span[0] for span in spans_m) - 1.0
    down = np.array([[0.0, 0.0, -1.0]], dtype=np.float32)
    range_m, instance, triangle = np.empty(1, np.float32), np.empty(1, np.int32), np.empty(1, np.int32)
    found: list[tuple[float, bool]] = []
    for _ in range(_MAX_SURFACES):
        cast_rays(world, np.array([[x_m, y_m, from_m]]), down, np.zeros(1, np.int64), from_m - until_m, range_m, instance, triangle)
        if instance[0] < 0:
            break
        height_m = from_m - float(range_m[0])
        mover = int(world.instance_object[instance[0]])
        thing = objects[mover if mover >= 0 else int(world.owner[triangle[0]])]
        if _is_ground(thing):
            found.append((height_m, _faces_up(thing, int(world.source[triangle[0]]))))
        from_m = height_m - _STEP_M
    return found


def _faces_up(thing: SceneObject, row: int) -> bool:
    """Whether a triangle of a still object faces up, by the order of its corners."""
    if not isinstance(thing.placement, Pose):
        raise TypeError("placement must be a Pose")
    corners: npt.NDArray[np.float64] = thing.mesh.vertices_m[thing.mesh.triangles[row]]
    normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    return bool(matrix_from_quaternion(thing.placement.orientation)[2] @ normal > 0.0)
