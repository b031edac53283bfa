"""An editing session: edits of a rig's scene as timed changes, with undo and redo."""

import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hilsim.config.rig import load_rig as load_rig_file
from hilsim.editing.catalogue import catalogue_entry
from hilsim.editing.routes import FREE, Snap, route, route_faults
from hilsim.editing.saving import RigFile, named_path, save_rig, write_script
from hilsim.editing.scene import EditedScene, place_faults, table_faults
from hilsim.editing.shapes import Shape
from hilsim.editing.targets import ChangeTarget
from hilsim.editing.things import PLACE_KEYS, SHAPES, Edit, Thing
from hilsim.errors import ConfigError
from hilsim.world.geometry.frames import Vector
from hilsim.world.scene.object_specs import ZERO

_TRAVEL_BEGINS_S = 0.1
"""Time from a travel's change to its first waypoint: the change has begun by then, also in a daemon."""
_NUMBERED = re.compile(r"( [0-9]+|\[[0-9]+\])$")


class EditSession:
    """Edits of a rig's scene.

    Each edit is checked, with all faults at once, and then sent as a timed change. Nothing is written to the rig's file before ``save``.

    Attributes:
        snap: Places and angles that objects snap to, unless an edit has its own.
    """

    def __init__(self, path: Path, target: ChangeTarget, *, directory: Path | None = None, snap: Snap = FREE) -> None:
        """Read a rig and the changes that were made of it so far.

        Args:
            path: File of the rig.
            target: Receiver of the changes.
            directory: Directory in which copies and scripts are saved; None: the rig's.
            snap: Places and angles that objects snap to.

        Raises:
            AssetError: a file of the scene cannot be used.
            ConfigError: the rig is invalid.
        """
        self.snap = snap
        self._lock = threading.RLock()
        self._target = target
        path = path.absolute()
        self._file = RigFile.read(path)
        self._directory = (directory or path.parent).resolve()
        self._scene = EditedScene(load_rig_file(path), target)
        self._done: list[Edit] = []
        self._undone: list[Edit] = []

    # What there is

    @property
    def path(self) -> Path:
        """File of the rig."""
        return self._file.path

    def objects(self) -> dict[str, Thing]:
        """Objects that can be edited, by their names."""
        with self._lock:
            return {thing.shown_name: thing for key, thing in self._scene.things.items() if key not in self._scene.fixed}

    def fixed(self) -> dict[str, str]:
        """Reason for each object that cannot be edited, by its name."""
        with self._lock:
            return dict(self._scene.fixed)

    def rig_s(self) -> float:
        """Rig time now.

        Raises:
            TransmitError: the daemon does not answer.
        """
        return self._target.rig_s()

    def shapes(self, rig_s: float) -> list[Shape]:
        """Shapes of all objects at a rig time, for what draws them."""
        with self._lock:
            return self._scene.shapes(rig_s)

    @property
    def origin_m(self) -> Vector:
        """Origin of the scene's frame in the world."""
        return self._scene.origin_m

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Finished edits that can be undone, the oldest first."""
        return tuple(self._done)

    @property
    def undone(self) -> tuple[Edit, ...]:
        """Undone edits that can be done again, the oldest first."""
        return tuple(self._undone)

    @property
    def is_saved(self) -> bool:
        """Whether the file has every edit."""
        with self._lock:
            return self._scene.of_file == self._scene.things

    # Edits

    def add(
        self,
        kind: str,
        name: str = "",
        position_m: Sequence[float] = ZERO,
        rotation_deg: Sequence[float] = ZERO,
        *,
        snap: Snap | None = None,
        **keys: Any,
    ) -> Edit:
        """Add an object.

        Args:
            kind: ``box``, ``cylinder``, ``sphere``, ``cone``, ``capsule``, ``ellipsoid``, ``plane`` or ``mesh``.
            name: Name that no other object has; empty: the kind and a number.
            position_m: Position in the scene's frame.
            rotation_deg: Roll, pitch and yaw.
            snap: Places that it snaps to; None: those of the session.
            keys: Other keys of its table: ``size_m=[1, 1, 1]``, ``material="wood"``.

        Raises:
            AssetError: a file cannot be used.
            ConfigError: with every fault, one a line.
            TransmitError: the daemon does not answer.
        """
        with self._lock:
            snap = snap or self.snap
            faults = [] if kind in SHAPES else [f'kind must be {", ".join(SHAPES[:-1])} or {SHAPES[-1]}, got "{kind}"']
            faults += [f"{key} must not be given: it follows from the place" for key in sorted(PLACE_KEYS & keys.keys() - {"name"})]
            name = name or self._scene.free_name(kind)
            faults += self._scene.name_faults(name, None) + self._scene.file_faults(keys)
            faults += place_faults(position_m, rotation_deg)
            if faults:
                keys = {key: value for key, value in keys.items() if key not in PLACE_KEYS}
                raise ConfigError("\n".join([*faults, *(table_faults(kind, name, keys) if kind in SHAPES else [])]))
            thing = Thing(
                name=name,
                live_name=self._scene.free_key(name),
                kind=kind,
                keys=keys,
                position_m=snap.position(position_m),
                rotation_deg=snap.rotation(rotation_deg),
            )
            return self._make(f"add {name}", thing.live_name, self._scene.standing(thing) if snap.on_ground else thing)

    def add_from_library(
        self,
        model: str,
        name: str = "",
        position_m: Sequence[float] = ZERO,
        heading_deg: float = 0.0,
        *,
        material: str = "",
        label: int = 0,
        snap: Snap | None = None,
    ) -> Edit:
        """Add an object of the library.

        Args:
            model: Name in ``CATALOGUE``, such as ``saloon``.
            name: Name that no other object has; empty: the model and a number.
            position_m: Position of the middle of its footprint.
            heading_deg: Direction in which it looks, from x to the left.
            material: Material of a car's body, a person's clothes or a sign's face; empty: the usual one.
            label: Class in the ground truth, 0 to 255.
            snap: Places that it snaps to; None: those of the session.

        Raises:
            ConfigError: with every fault, one a line.
            TransmitError: the daemon does not answer.
        """
        with self._lock:
            keys = catalogue_entry(model).keys(material)
            return self.add(
                "mesh",
                name or self._scene.free_name(model),
                position_m,
                (0.0, 0.0, heading_deg),
                snap=snap,
                **keys,
                **({"label": label} if label else {}),
            )

    def move(self, name: str, position_m: Sequence[float], rotation_deg: Sequence[float] | None = None, *, snap: Snap | None = None) -> Edit:
        """Put an object elsewhere, where it stays.

        Args:
            name: Name of the object.
            position_m: Position in the scene's frame.
            rotation_deg: Roll, pitch and yaw; None: as they are.
            snap: Places that it snaps to; None: those of the session.

        Raises:
            ConfigError: with every fault, one a line.
            TransmitError: the daemon does not answer.
        """
        with self._lock:
            snap = snap or self.snap
            thing = self._scene.found(name, place_faults(position_m, rotation_deg or ZERO)).at(self._target.rig_s())
            turned = thing.rotation_deg if rotation_deg is None else snap.rotation(rotation_deg)
            later = replace(thing, position_m=snap.position(position_m), rotation_deg=turned)
            return self._make(f"move {name}", thing.live_name, self._scene.standing(later) if snap.on_ground else later)

    def turn(self, name: str, rotation_deg: Sequence[float], *, snap: Snap | None = None) -> Edit:
        """Turn an object where it is; one that travels stops there.

        Args:
            name: Name of the object.
            rotation_deg: Roll, pitch and yaw.
            snap: Angles that it snaps to; None: those of the session.

        Raises:
            ConfigError: with every fault, one a line.
            TransmitError: the daemon does not answer.
        """
        with self._lock:
            thing = self._scene.found(name, place_faults(ZERO, rotation_deg)).at(self._target.rig_s())
            return self._make(f"turn {name}", thing.live_name, replace(thing, rotation_deg=(snap or self.snap).rotation(rotation_deg)))

    def copy(self, name: str, position_m: Sequence[float], new_name: str = "", *, snap: Snap | None = None) -> Edit:
        """Put a copy of an object elsewhere.

        Args:
            name: Name of the object.
            position_m: Position of the copy.
            new_name: Name of the copy; empty: that of the object and a number.
            snap: Places that it snaps to; None: those of the session.

        Raises:
            ConfigError: with every fault, one a line.
            TransmitError: the daemon does not answer.
        """
        with self._lock:
            snap = snap or self.snap
            new_name = new_name or self._scene.free_name(_NUMBERED.sub("", name))
            model = self._scene.found(name, [*place_faults(position_m, ZERO), *self._scene.name_faults(new_name, None)]).at(self._target.rig_s())
            thing = replace(model, name=new_name, live_name=self._scene.free_key(new_name), position_m=snap.position(position_m))
            return self._make(f"copy {name} to {new_name}", thing.live_name, self._scene.standing(thing) if snap.on_ground else thing)

    def rename(self, name: str, new_name: str) -> Edit:
        """Give an object another name in the saved rig.

        Packets hold no names, so no change is made: until the rig is loaded again, timed changes and the ground truth have the former name.

        Args:
            name: Name of the object.
            new_name: Name that no other object has.

        Raises:
            ConfigError: with every fault, one a line.
        """
        with self._lock:
            thing = self._scene.found(name, self._scene.name_faults(new_name, name))
            return self._make(f"rename {name} to {new_name}", thing.live_name, replace(thing, name=new_name))

    def delete(self, name: str) -> Edit:
        """Remove an object.

        Args:
            name: Name of the object.

        Raises:
            ConfigError: no object has the name, or it cannot be edited.
            TransmitError: the daemon does not answer.
        """
        with self._lock:
            return self._make(f"delete {name}", self._scene.found(name).live_name, None)

    def travel(
        self,
        name: str,
        points_m: Sequence[Sequence[float]],
        speed_mps: float,
        *,
        loop: bool = False,
        smooth: bool = False,
        snap: Snap | None = None,
    ) -> Edit:
        """Let an object travel from where it is through points.

        Args:
            name: Name of the object.
            points_m: Points in the scene's frame, such as those that a user has clicked.
            speed_mps: Speed, up to 100 m/s.
            loop: Whether it returns to where it began, and begins again.
            smooth: Whether its way is a curve; else straight lines, at whose ends it turns on the spot.
            snap: Places that the points snap to; None: those of the session.

        Raises:
            ConfigError: with every fault, one a line.
            TransmitError: the daemon does not answer.
        """
        with self._lock:
            snap = snap or self.snap
            begin_s = self._target.rig_s() + _TRAVEL_BEGINS_S
            here = self._scene.found(name).at(begin_s)
            points = [here.position_m, *(snap.position(point) for point in points_m)]
            faults = route_faults(points, speed_mps, loop=loop)
            if faults:
                raise ConfigError("\n".join(faults))
            if snap.on_ground:
                points = [here.position_m, *(self._scene.standing(replace(here, position_m=point)).position_m for point in points[1:])]
            motion = route(points, speed_mps, begin_s, loop=loop, smooth=smooth)
            return self._make(f"travel {name}", here.live_name, here.travelling(motion))

    def undo(self, count: int = 1) -> tuple[Edit, ...]:
        """Undo the latest edits, each by a timed change; fewer if there are fewer.

        A deleted object is added again with the same table; its id in the ground truth is a new one.

        Raises:
            ConfigError: an edit cannot be undone.
            TransmitError: the daemon does not answer.
        """
        with self._lock:
            return tuple(self._step_back() for _ in range(min(count, len(self._done))))

    def redo(self, count: int = 1) -> tuple[Edit, ...]:
        """Do the latest undone edits again, each by a timed change; fewer if there are fewer.

        Raises:
            ConfigError: an edit cannot be done again.
            TransmitError: the daemon does not answer.
        """
        with self._lock:
            return tuple(self._step_forward() for _ in range(min(count, len(self._undone))))

    # Files

    def save(self) -> Path:
        """Write the present place and table of every object that was edited to the rig's file; other lines stay as they are.

        What the rig's script did is not written, so that rig and script still fit each other.

        Raises:
            ConfigError: the file was changed since it was read, is a shipped one or read-only, or the edits cannot be written; the file is as it was.
        """
        with self._lock:
            return self._save(self._file.path)

    def save_as(self, name: str, *, replace_file: bool = False) -> Path:
        """Write the rig with its edits to another file, which the session then edits.

        Args:
            name: Name of the file in the session's directory, ending in ``.toml``.
            replace_file: Whether an existing file is replaced.

        Raises:
            ConfigError: the name leaves the directory, the file exists, or the edits cannot be written.
        """
        with self._lock:
            path = named_path(self._directory, name, (".toml",), replace_file=replace_file)
            return self._save(path, is_copy=True)

    def save_script(self, name: str, *, replace_file: bool = False) -> Path:
        """Write all timed changes so far as a script, for ``hilsim record RIG --script``.

        Args:
            name: Name of the file in the session's directory, ending in ``.toml`` or ``.jsonl``.
            replace_file: Whether an existing file is replaced.

        Raises:
            ConfigError: the name leaves the directory, the file exists, or cannot be written.
            TransmitError: the daemon does not answer.
        """
        with self._lock:
            path = named_path(self._directory, name, (".toml", ".jsonl"), replace_file=replace_file)
            write_script(path, self._target.script())
            return path

    # How it works

    def _make(self, title: str, key: str, later: Thing | None) -> Edit:
        edit = Edit(title=title, at_s=self._scene.changed(key, later), key=key, former=self._scene.things.get(key), later=later)
        self._scene.put(key, later)
        self._done.append(edit)
        self._undone.clear()
        return edit

    def _step_back(self) -> Edit:
        edit = self._done[-1]
        at_s = self._scene.changed(edit.key, edit.former)
        self._scene.put(edit.key, edit.former)
        self._undone.append(self._done.pop())
        return replace(edit, title=f"undo {edit.title}", at_s=at_s, former=edit.later, later=edit.former)

    def _step_forward(self) -> Edit:
        edit = self._undone[-1]
        at_s = self._scene.changed(edit.key, edit.later)
        self._scene.put(edit.key, edit.later)
        self._undone.pop()
        self._done.append(replace(edit, at_s=at_s))
        return self._done[-1]

    def _save(self, path: Path, *, is_copy: bool = False) -> Path:
        scene = self._scene
        changed = {
            scene.rows[key]: scene.things.get(key) for key, thing in scene.of_file.items() if key in scene.rows and scene.things.get(key) != thing
        }
        added = [scene.things[key] for key in scene.added()]
        placed = {key: (scene.rows.get(key), thing) for key, thing in scene.things.items() if key not in scene.of_script}
        self._file = save_rig(self._file, path, changed, added, placed, is_copy=is_copy)
        scene.take_saved()
        return path
