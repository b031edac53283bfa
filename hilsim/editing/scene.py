"""A scene that is edited: its objects, and the state of the rig that changes have made."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hilsim.assembly.build import build_scenery
from hilsim.assembly.changed import RigState
from hilsim.config.rig import Rig
from hilsim.config.script import AddChange, MoveChange, RemoveChange, TravelChange, change_table, parse_change
from hilsim.editing.shapes import Shape, shape_of
from hilsim.editing.targets import ChangeTarget
from hilsim.editing.things import SHAPES, Thing, changes_between, thing_of
from hilsim.errors import ConfigError, HilsimError
from hilsim.world.assets.library import is_in_library
from hilsim.world.assets.standing import stood
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.live_keys import LivePlacement
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.tracks import fixed_track, track_state
from hilsim.world.render.cpu import cast_rays
from hilsim.world.scene.object_specs import ZERO, ObjectSpec, finite
from hilsim.world.scene.world import SceneObject, World

_PLACE_IN_TABLE = re.compile(r"[a-z]+\[[0-9]+\]")
_LONGEST_NAME = 100


class EditedScene:
    """The objects of a rig, and how changes make them others.

    Attributes:
        things: Objects that there are, by their ``live_name``.
        fixed: Reason for each object that cannot be edited, by its ``live_name``.
        rows: Kind and number of each object's table in the rig's file, by its ``live_name``.
        of_script: ``live_name`` of each object that the rig's script has added, moved or removed: what it did is not written to the rig's file.
    """

    def __init__(self, rig: Rig, target: ChangeTarget) -> None:
        """Take a rig, and the changes that were made of it so far.

        Raises:
            AssetError: a file of the scene cannot be used.
            ConfigError: the scene is invalid.
        """
        self._rig = rig
        self._target = target
        self._state = RigState.of_movers(rig, build_scenery(rig))
        self.things: dict[str, Thing] = {}
        self.fixed: dict[str, str] = {}
        self.rows: dict[str, tuple[str, int]] = {}
        self._standing: set[str] = {thing.name for thing in self._state.objects if thing.stands_on_ground}
        self._keys: set[str] = set(self._state.object_names)
        self._take_scene(rig)
        self.of_file = dict(self.things)
        """Objects as the rig's file has them, or as its script left them."""
        self.of_script: set[str] = set()
        self._take_script()
        _load_kernels(self._state.world)

    @property
    def origin_m(self) -> Vector:
        """Origin of the scene's frame in the world."""
        return self._rig.spec.scene.origin_m

    @property
    def names(self) -> set[str]:
        """Names of all objects."""
        return {thing.shown_name for thing in self.things.values()} | self.fixed.keys()

    def shapes(self, rig_s: float) -> list[Shape]:
        """Shapes of all objects at a rig time."""
        shown = {key: thing.shown_name for key, thing in self.things.items() if key not in self.fixed}
        removed = self._state.removed
        kept = [thing for number, thing in enumerate(self._state.objects) if number not in removed]
        shapes = (shape_of(shown.get(thing.name, ""), thing, rig_s) for thing in kept)
        return [shape for shape in shapes if shape is not None]

    def found(self, name: str, faults: Iterable[str] = ()) -> Thing:
        """The object of a name.

        Raises:
            ConfigError: there is none that can be edited; with all other faults.
        """
        found = [thing for thing in self.things.values() if thing.shown_name == name]
        faults = list(faults)
        reason = self.fixed.get(found[0].live_name if found else name)
        if reason:
            faults.insert(0, f'name must be of an object that can be edited, got "{name}": {reason}')
        elif len(found) != 1:
            faults.insert(0, f'name must be one object\'s, got "{name}", which {len(found) or "no"} objects have')
        if faults:
            raise ConfigError("\n".join(faults))
        return found[0]

    def standing(self, thing: Thing) -> Thing:
        """An object put on the ground below its position, whose z is the height above it.

        Raises:
            ConfigError: there is no ground.
        """
        state, scene = self._state, self._rig.spec.scene
        if not state.has(thing.live_name):
            state = state.after(parse_change({"kind": "add", **replace(thing, position_m=ZERO).added()}))
        number = next(row for row in reversed(range(len(state.objects))) if state.objects[row].name == thing.live_name)
        pose = Pose(position_m=scene.origin_m) @ mounting(thing.position_m, thing.rotation_deg)
        world, ground = self._ground_without(number)
        placed = stood(replace(state.objects[number], placement=pose, name=thing.shown_name), world, ground, scene)
        self._standing.add(thing.live_name)
        if not isinstance(placed.placement, Pose):
            raise TypeError("an object on the ground must have a Pose")
        return replace(thing, position_m=self._in_scene(placed.placement))

    def _ground_without(self, number: int) -> tuple[World, list[SceneObject]]:
        """World of the objects that others can stand on, but for one object, and all objects, of which the others stand on the ground."""
        objects = self._state.objects
        unseen = {
            row
            for row, thing in enumerate(objects)
            if row == number or row in self._state.removed or not isinstance(thing.placement, Pose) or thing.name in self._standing
        }
        return self._state.seen_without(unseen), [replace(thing, stands_on_ground=row in unseen) for row, thing in enumerate(objects)]

    def name_faults(self, name: str, own: str | None) -> list[str]:
        """Faults of a name for a new object, or for the object that has the name ``own``."""
        taken = self.names
        rules = [
            (bool(name.strip()) and name.isprintable(), f"name must be printable and not empty, got {name[:80]!r}"),
            (len(name) <= _LONGEST_NAME, f"name must be at most {_LONGEST_NAME} characters, got {len(name)}"),
            (not _PLACE_IN_TABLE.fullmatch(name), f'name must not be a place in the rig\'s table, got "{name}"'),
            (name not in taken or name == own, f'name must be new, got "{name[:80]}", which an object has'),
        ]
        return [message for holds, message in rules if not holds]

    def file_faults(self, keys: Mapping[str, Any]) -> list[str]:
        """Faults of the path of a mesh."""
        file = keys.get("file")
        if not isinstance(file, str) or is_in_library(file) or not outside(self._rig.directory, file):
            return []
        return [f'file must be in the rig\'s directory, got "{file[:200]}"']

    def free_name(self, base: str) -> str:
        """The first of ``base 1``, ``base 2``, … that no object has or has had."""
        taken = self.names | self._keys
        return next(name for number in range(1, len(taken) + 2) if (name := f"{base} {number}") not in taken)

    def free_key(self, name: str) -> str:
        """``live_name`` of a new object: its name, unless another object has or has had that."""
        return name if name not in self._keys else self.free_name(name)

    def changed(self, key: str, later: Thing | None) -> float:
        """Check and send the changes that make an object another; returns the rig time at which the last takes effect.

        Raises:
            AssetError: a file cannot be used.
            ConfigError: a change has faults, or cannot be made; none was sent.
            TransmitError: the daemon does not answer.
        """
        former = self.things.get(key)
        state, changes = self._state, list(changes_between(former, later))
        for kind, keys in changes:
            state = state.after(parse_change({"kind": kind, **keys}))
        at_s = self._target.rig_s() if not changes else 0.0
        for kind, keys in changes:
            at_s = self._target.change(kind, keys)
        self._state = state
        return at_s

    def put(self, key: str, thing: Thing | None) -> None:
        """Set what an object is now; None: it was removed."""
        if thing is None:
            del self.things[key]
        else:
            self.things[key] = thing
            self._keys.add(key)

    def take_saved(self) -> None:
        """Number the tables of a file that has just got every object as it is: those that it had in their order, then the new ones."""
        kept = sorted((key for key in self.rows if key in self.things or key not in self.of_file), key=lambda key: self.rows[key])
        kinds = {key: self.rows[key][0] for key in kept} | {key: self.things[key].kind for key in self.added()}
        counts: Counter[str] = Counter()
        self.rows = {}
        for key, kind in kinds.items():
            self.rows[key] = (kind, counts[kind])
            counts[kind] += 1
        self.of_file = dict(self.things)

    def added(self) -> list[str]:
        """``live_name`` of each object that an edit has added since the file was read or saved."""
        return [key for key in self.things if key not in self.rows and key not in self.of_file]

    def _take_scene(self, rig: Rig) -> None:
        """Take the objects of a rig as they are at its start."""
        scene = rig.table.get("scene", {})
        numbers = {thing.name: number for number, thing in enumerate(self._state.objects)}
        names = Counter(thing.name for thing in self._state.objects)
        for place, spec in rig.spec.scene.objects():
            live_name = _key_of(place, spec, names)
            kind, _, row = place.partition("[")
            thing = thing_of(kind, scene[kind][int(row.rstrip("]"))], live_name)
            self.rows[live_name] = (kind, int(row.rstrip("]")))
            number = numbers.get(live_name)
            self.things[live_name] = self._stood(thing, spec, number)
            if kind not in SHAPES:
                self.fixed[live_name] = "it is a terrain, which is not edited"
            elif spec.name and live_name != spec.name:
                self.fixed[live_name] = f'several objects have its name "{spec.name}"'
        for known in self._state.objects:
            if isinstance(known.placement, LivePlacement):
                self.fixed[known.name] = "another simulator moves it"
            elif known.name not in self.things and names[known.name] <= 1:
                self.fixed[known.name] = "it comes from the scene's generator or SDF file, and has no table in the rig"

    def _stood(self, thing: Thing, spec: ObjectSpec, number: int | None) -> Thing:
        """An object at its place on the ground, if it is to stand there."""
        if not spec.stand_on_ground or number is None:
            return thing
        placement = self._state.objects[number].placement
        return replace(thing, position_m=self._in_scene(placement)) if isinstance(placement, Pose) else thing

    def _in_scene(self, pose: Pose) -> Vector:
        x, y, z = (at - zero for at, zero in zip(pose.position_m, self._rig.spec.scene.origin_m, strict=True))
        return x, y, z

    def _take_script(self) -> None:
        """Take the changes that were made before the session."""
        scripted = self._target.scripted()
        for number, table in enumerate(self._target.script()):
            change = parse_change(dict(table))
            self._state = self._state.after(change)
            match change:
                case AddChange() if change.shape is not None and not change.external_id:
                    kind = next(kind for kind in SHAPES if getattr(change, kind) is not None)
                    thing = thing_of(kind, change_table(change)[kind], change.object_name)
                    self.things[change.object_name] = self._stood(thing, change.shape, len(self._state.objects) - 1)
                    self._keys.add(change.object_name)
                case AddChange():
                    self.fixed[change.object_name] = "another simulator moves it"
                case MoveChange() if change.name in self.things:
                    moved = replace(self.things[change.name], position_m=change.position_m, rotation_deg=change.rotation_deg, motion=None)
                    self.things[change.name] = moved
                case TravelChange() if change.name in self.things:
                    self.things[change.name] = self.things[change.name].travelling(change_table(change)["motion"])
                case RemoveChange():
                    self.things.pop(change.name, None)
                    self.fixed.pop(change.name, None)
            if number in scripted and isinstance(change, AddChange | MoveChange | TravelChange | RemoveChange):
                self._take_scripted(change.object_name if isinstance(change, AddChange) else change.name)

    def _take_scripted(self, key: str) -> None:
        """Note that an object is as the rig's script left it."""
        self.of_script.add(key)
        self.of_file.pop(key, None)
        if key in self.things:
            self.of_file[key] = self.things[key]


def _load_kernels(world: World) -> None:
    """Load what edits call, so that the first one takes as long as the others."""
    track_state(fixed_track(Pose()), 0)
    down = np.array([[0.0, 0.0, -1.0]], np.float32)
    cast_rays(world, np.zeros((1, 3)), down, np.zeros(1, np.int64), 1.0, np.empty(1, np.float32), np.empty(1, np.int32), np.empty(1, np.int32))


def table_faults(kind: str, name: str, keys: Mapping[str, Any]) -> list[str]:
    """Faults of the keys of a new object's table."""
    try:
        parse_change({"kind": "add", kind: {"name": name or "object", **keys}})
    except HilsimError as error:
        return str(error).split("\n")
    return []


def _key_of(place: str, spec: ObjectSpec, names: Mapping[str, int]) -> str:
    """Name of an object in timed changes; its place in the table where another object has its name."""
    return spec.name if spec.name and names[spec.name] <= 1 else place


def place_faults(position_m: Sequence[float], rotation_deg: Sequence[float]) -> list[str]:
    """Faults of a place, one sentence each."""
    faults = []
    for name, values in (("position_m", position_m), ("rotation_deg", rotation_deg)):
        numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        if len(values) != 3 or len(numbers) != 3:
            faults.append(f"{name} must be three numbers, got {list(values)[:8]!r}")
            continue
        holds, message = finite(name, map(float, numbers))
        faults += [] if holds and all(map(math.isfinite, numbers)) else [message]
    return faults


def outside(directory: Path, name: str) -> bool:
    """Whether a relative or absolute path leads out of a directory, also through links; True also for a name that no file can have."""
    try:
        return not (directory / name).resolve().is_relative_to(directory.resolve())
    except (OSError, ValueError):
        return True
