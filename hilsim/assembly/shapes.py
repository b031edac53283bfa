"""Shapes of a scene's objects at an instant, for programs that show them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.geometry.live_keys import LivePlacement
from hilsim.geometry.poses import Pose
from hilsim.geometry.tracks import track_state
from hilsim.scene.world import SceneObject


class Shape(NamedTuple):
    """An object at an instant.

    Attributes:
        name: Name of the object.
        label: Label of the object.
        vertices_m: ``float64[n, 3]``, in the object's own frame.
        triangles: ``int32[m, 3]``, rows of ``vertices_m``.
        pose: World from object.
        is_still: Whether the object stands still all the time.
    """

    name: str
    label: int
    vertices_m: npt.NDArray[np.float64]
    triangles: npt.NDArray[np.int32]
    pose: Pose
    is_still: bool


def shapes_at(objects: Sequence[SceneObject], time_ns: int) -> tuple[Shape, ...]:
    """Shapes of objects at a rig time, in their order; those that another simulator moves are left out."""
    found = []
    for thing in objects:
        if isinstance(thing.placement, LivePlacement):
            continue
        if isinstance(thing.placement, Pose):
            pose = thing.placement
        else:
            position_m, orientation = track_state(thing.placement, time_ns)
            pose = Pose(position_m=position_m, orientation=orientation)
        found.append(Shape(thing.name, thing.label, thing.mesh.vertices_m, thing.mesh.triangles, pose, isinstance(thing.placement, Pose)))
    return tuple(found)
