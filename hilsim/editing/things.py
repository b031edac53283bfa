"""Objects of a rig as they are edited: frozen values, each the whole of what a table of ``[scene]`` says of one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import degrees
from typing import Any

from hilsim.config.parse import collect_faults
from hilsim.errors import ConfigError
from hilsim.world.assets.tracks import motion_track
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.rotations import roll_pitch_yaw_rad
from hilsim.world.geometry.tracks import track_state
from hilsim.world.scene.object_specs import ZERO, MotionSpec

SHAPES = ("mesh", "plane", "box", "cylinder", "sphere", "cone", "capsule", "ellipsoid")
"""Kinds of objects that can be edited; a terrain cannot."""
PLACE_KEYS = frozenset({"name", "position_m", "rotation_deg", "motion", "stand_on_ground"})
"""Keys of a table that say what an object is called and where it is."""
NOWHERE = (ZERO, ZERO)


@dataclass(frozen=True, kw_only=True)
class Thing:
    """An object.

    Attributes:
        name: Name in the rig's file once it is saved; empty: none there.
        live_name: Name in timed changes; it never changes.
        kind: Key of its table in ``[scene]``.
        keys: Keys of its table but those of name and place.
        position_m: Position in the scene's frame; zero for one that travels.
        rotation_deg: Roll, pitch and yaw there; zero for one that travels.
        motion: Table of its way; None: it stays where it is.
        offset: Position and rotation of the shape in the object's frame.
    """

    name: str
    live_name: str
    kind: str
    keys: Mapping[str, Any] = field(default_factory=dict)
    position_m: Vector = ZERO
    rotation_deg: Vector = ZERO
    motion: Mapping[str, Any] | None = None
    offset: tuple[Vector, Vector] = NOWHERE

    @property
    def shown_name(self) -> str:
        """Name, or the place in the rig's table of an object without one."""
        return self.name or self.live_name

    def at(self, rig_s: float) -> "Thing":
        """The same object at rest where it is at a rig time."""
        if self.motion is None:
            return self
        pose = Pose(**_state(self.motion, round(rig_s * 1e9)))
        return replace(self, position_m=pose.position_m, rotation_deg=_rotation_deg(pose), motion=None)

    def travelling(self, motion: Mapping[str, Any]) -> "Thing":
        """The same object on a way."""
        return replace(self, position_m=ZERO, rotation_deg=ZERO, motion=motion)

    def place(self) -> dict[str, Any]:
        """Keys of name and place in a table of ``[scene]``."""
        named = {"name": self.name} if self.name else {}
        if self.motion is not None:
            return {**named, **(_place_keys(*self.offset) if self.offset != NOWHERE else {}), "motion": dict(self.motion)}
        if self.offset == NOWHERE:
            return {**named, **_place_keys(self.position_m, self.rotation_deg)}
        pose = mounting(self.position_m, self.rotation_deg) @ mounting(*self.offset)
        return {**named, **_place_keys(pose.position_m, _rotation_deg(pose))}

    def added(self) -> dict[str, Any]:
        """Keys of the change that adds it."""
        motion = self.motion
        if motion is None and self.offset != NOWHERE:  # its later moves are those of its frame
            stay = {"position_m": list(self.position_m), "rotation_deg": list(self.rotation_deg)}
            motion = {"waypoints": [{"time_s": time_s, **stay} for time_s in (0.0, 1.0)]}
        table = replace(self, name=self.live_name, motion=motion).place()
        return {self.kind: {**table, **self.keys}}


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A finished edit, for undo and redo.

    Attributes:
        title: Sentence for the user, such as ``move crate``.
        at_s: Rig time at which it took effect; of an edit that makes no change (another name), the rig time then.
        key: ``live_name`` of the object.
        former: The object before; None: there was none.
        later: The object after; None: it was removed.
    """

    title: str
    at_s: float
    key: str
    former: Thing | None
    later: Thing | None


def changes_between(former: Thing | None, later: Thing | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Kind and keys of each change that makes one of the other; another name alone takes none."""
    if former is None and later is not None:
        yield "add", later.added()
    elif later is None and former is not None:
        yield "remove", {"name": former.live_name}
    elif former is not None and later is not None:
        if later.motion is not None and later.motion != former.motion:
            yield "travel", {"name": later.live_name, "motion": dict(later.motion)}
        place = (later.position_m, later.rotation_deg)
        if later.motion is None and (former.motion is not None or place != (former.position_m, former.rotation_deg)):
            yield "move", {"name": later.live_name, "position_m": list(place[0]), "rotation_deg": list(place[1])}


def thing_of(kind: str, table: Mapping[str, Any], live_name: str) -> Thing:
    """The object of a checked table of ``[scene]``.

    Args:
        kind: Key of the table.
        table: The table.
        live_name: Name in timed changes.
    """
    place = (_vector(table.get("position_m")), _vector(table.get("rotation_deg")))
    motion = table.get("motion")
    thing = Thing(name=str(table.get("name", "")), live_name=live_name, kind=kind, keys={key: table[key] for key in table if key not in PLACE_KEYS})
    if motion is not None:
        return replace(thing, motion=motion, offset=place)
    return replace(thing, position_m=place[0], rotation_deg=place[1])


def _state(motion: Mapping[str, Any], time_ns: int) -> dict[str, Any]:
    spec, faults = collect_faults(MotionSpec, dict(motion))
    if spec is None:
        raise ConfigError("\n".join(faults))
    position_m, orientation = track_state(motion_track(spec, ZERO), time_ns)
    return {"position_m": position_m, "orientation": orientation}


def _rotation_deg(pose: Pose) -> Vector:
    roll, pitch, yaw = roll_pitch_yaw_rad(pose.orientation)
    return degrees(roll), degrees(pitch), degrees(yaw)


def _vector(value: Any) -> Vector:
    x, y, z = value if value is not None else ZERO
    return float(x), float(y), float(z)


def _place_keys(position_m: Vector, rotation_deg: Vector) -> dict[str, Any]:
    turned = {"rotation_deg": list(rotation_deg)} if any(rotation_deg) else {}
    return {"position_m": list(position_m), **turned}
