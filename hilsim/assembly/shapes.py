"""Shapes of a scene's objects at an instant, for programs that show them."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.assembly.build import Scenery
from hilsim.assembly.changed import RigState
from hilsim.config.rig import Rig
from hilsim.config.script import Script
from hilsim.world.geometry.live_keys import LivePlacement
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import track_state
from hilsim.world.scene.world import SceneObject


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


class SceneHistory:
    """A scene at any rig time, as timed changes have made it by then."""

    def __init__(self, rig: Rig, scenery: Scenery, script: Script | None) -> None:
        """Make the changes.

        Args:
            rig: The rig.
            scenery: Its scenery before any change.
            script: Timed changes; None: there are none.

        Raises:
            AssetError: a file of an object cannot be used.
            ConfigError: a change cannot be made.
        """
        self._begins_ns = [0]
        self._objects = [_named_apart(scenery.objects, frozenset())]
        if script is None:
            return
        state = RigState.of_movers(rig, scenery)
        for change in sorted(script.changes, key=lambda change: change.at_ns or 0):
            former, state = state, state.after(change)
            if state.worlds is not former.worlds:
                self._begins_ns.append(change.at_ns or 0)
                self._objects.append(_named_apart(state.objects, state.removed))

    def shapes(self, time_ns: int) -> tuple[Shape, ...]:
        """Shapes of the objects at a rig time, whose names differ; those that another simulator moves are left out."""
        return shapes_at(self._objects[max(bisect_right(self._begins_ns, time_ns) - 1, 0)], time_ns)


def _named_apart(objects: Sequence[SceneObject], removed: AbstractSet[int]) -> tuple[SceneObject, ...]:
    """Objects without the removed ones; several of one name have their ids added to it."""
    there = [(number, thing) for number, thing in enumerate(objects) if number not in removed]
    counts = Counter(thing.name for _, thing in there)
    return tuple(thing if counts[thing.name] == 1 else replace(thing, name=f"{thing.name} [{number}]") for number, thing in there)
