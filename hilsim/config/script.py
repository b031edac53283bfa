"""Timed changes of a rig: what ``hilsim control`` asks for while a rig runs, and what a script lists for ``hilsim run`` and ``hilsim record``.

A script is a TOML file with a ``[[change]]`` table per change, or a file of JSON lines (``.jsonl``) with an object per change; the keys are the same.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Discriminator

from hilsim.config.parse import adapter_of, collect_faults, parse_table
from hilsim.config.toml_file import read_toml
from hilsim.errors import ConfigError, require
from hilsim.faults.specs import AnyFault, FaultSpec
from hilsim.limits import SCRIPT_BYTES, SCRIPT_CHANGES
from hilsim.sensor.optics.weather import WeatherSpec
from hilsim.sensor.optics.window import WindowSpec
from hilsim.sensor.setup import ChangeableSettings, ReturnModeName
from hilsim.sensor.specs import PulseWord
from hilsim.world.platforms.wind import WindSpec
from hilsim.world.scene.object_specs import MeshSpec, MotionSpec, ObjectSpec, Rule, finite
from hilsim.world.scene.shape_specs import BoxSpec, CapsuleSpec, ConeSpec, CylinderSpec, EllipsoidSpec, PlaneSpec, SphereSpec

Vector = tuple[float, float, float]
LATEST_S = 1e8
_LATEST_UTC_NS = 8 * 10**18


@dataclass(frozen=True, kw_only=True)
class ChangeSpec:
    """Keys of every change.

    Attributes:
        at_s: Rig time at which it takes effect; None: as soon as possible (not in a script).
        late_s: Rig time at which it takes effect for a sensor or part of a name, where that is another one: a running rig writes it for one that had
            been rendered beyond ``at_s``.
    """

    at_s: float | None = None
    late_s: dict[str, float] = field(default_factory=dict)

    kind: str = ""

    def __post_init__(self) -> None:
        require(*self.rules())

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield self.at_s is None or 0.0 <= self.at_s <= LATEST_S, f"at_s must be 0 to {LATEST_S:.0e}, got {self.at_s}"
        for name, late_s in self.late_s.items():
            yield (self.at_s or 0.0) <= late_s <= LATEST_S, f"late_s of {name} must be at_s to {LATEST_S:.0e}, got {late_s}"

    @property
    def at_ns(self) -> int | None:
        """``at_s`` in nanoseconds."""
        return None if self.at_s is None else round(self.at_s * 1e9)

    def sensor_ns(self, name: str) -> int:
        """Rig time (ns) at which it takes effect for a sensor."""
        return round(self.late_s.get(name, self.at_s or 0.0) * 1e9)


@dataclass(frozen=True, kw_only=True)
class AddChange(ChangeSpec):
    """Add an object to the scene: one of the tables of ``[scene]``, with a name that no other object has.

    Attributes:
        mesh: A mesh file; its path is relative to the rig.
        plane: A rectangle.
        box: A box.
        cylinder: An upright cylinder.
        sphere: A sphere.
        cone: An upright cone.
        capsule: An upright capsule.
        ellipsoid: An ellipsoid.
        like: Name of an object of the scene whose mesh and label it has, in place of a shape; only with ``external_id``.
        name: Name of an object with ``like``.
        external_id: Id of the object in messages of another simulator (``[external]``), which moves it from its first pose on; 0: it is not moved by one.
    """

    kind: Literal["add"] = "add"
    mesh: MeshSpec | None = None
    plane: PlaneSpec | None = None
    box: BoxSpec | None = None
    cylinder: CylinderSpec | None = None
    sphere: SphereSpec | None = None
    cone: ConeSpec | None = None
    capsule: CapsuleSpec | None = None
    ellipsoid: EllipsoidSpec | None = None
    like: str = ""
    name: str = ""
    external_id: int = 0

    def _given(self) -> tuple[ObjectSpec, ...]:
        shapes = (self.mesh, self.plane, self.box, self.cylinder, self.sphere, self.cone, self.capsule, self.ellipsoid)
        return tuple(shape for shape in shapes if shape is not None)

    @property
    def shape(self) -> ObjectSpec | None:
        """The object; None for one that is like another."""
        return None if self.like else self._given()[0]

    @property
    def object_name(self) -> str:
        """Name of the object."""
        return self.name if self.shape is None else self.shape.name

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        given = self._given()
        count = len(given) + bool(self.like)
        yield count == 1, f"one of mesh, plane, box, cylinder, sphere, cone, capsule, ellipsoid and like must be given, got {count}"
        yield all(shape.name.strip() for shape in given) and bool(self.like) == bool(self.name.strip()), "name of the object must be given"
        names = [self.name, *(shape.name for shape in given)]  # a client chooses them, and terminals show them
        yield all(map(str.isprintable, names)), f"name must have printable characters only, got {''.join(names)[:80]!r}"
        yield 0 <= self.external_id < 1 << 32, f"external_id must be 0 to {(1 << 32) - 1}, got {self.external_id}"
        yield not self.like or self.external_id > 0, "external_id must be given with like"
        is_free = all(shape.motion is None and not shape.stand_on_ground for shape in given)
        yield self.external_id == 0 or is_free, "motion and stand_on_ground must not be given with external_id: another simulator moves the object"


@dataclass(frozen=True, kw_only=True)
class MoveChange(ChangeSpec):
    """Put an object elsewhere; it stays there.

    Attributes:
        name: Name of the object.
        position_m: Position in the scene's frame.
        rotation_deg: Roll, pitch and yaw in the scene's frame.
    """

    kind: Literal["move"] = "move"
    name: str
    position_m: Vector
    rotation_deg: Vector = (0.0, 0.0, 0.0)

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield finite("position_m", self.position_m)
        yield finite("rotation_deg", self.rotation_deg)


@dataclass(frozen=True, kw_only=True)
class TravelChange(ChangeSpec):
    """Let an object travel along waypoints, whose times are rig times.

    Attributes:
        name: Name of the object.
        motion: Its way through the scene.
    """

    kind: Literal["travel"] = "travel"
    name: str
    motion: MotionSpec


@dataclass(frozen=True, kw_only=True)
class RemoveChange(ChangeSpec):
    """Remove an object.

    Attributes:
        name: Name of the object.
    """

    kind: Literal["remove"] = "remove"
    name: str


@dataclass(frozen=True, kw_only=True)
class WeatherChange(ChangeSpec):
    """Change the weather.

    Attributes:
        weather: The rig's ``[weather]`` table from now on.
    """

    kind: Literal["weather"] = "weather"
    weather: WeatherSpec


_SETTINGS = ("window", "laser", "rotation_rate_rpm", "return_mode", "field_of_view_deg", "phase_lock", "phase_lock_deg")


@dataclass(frozen=True, kw_only=True)
class SensorChange(ChangeableSettings, ChangeSpec):  # type: ignore[misc] # some of its keys are the families'
    """Change settings of a sensor; those that are not given stay as they are.

    Attributes:
        sensor: Name of the sensor.
        window: Dirt on its window.
        laser: False: its lasers do not fire, and every record is a blank; its packets go on.
        rotation_rate_rpm: Mean rotation rate, of a sensor with a turning head; its motor changes the speed by 200 rpm a second.
        return_mode: Return mode, from the next packet on.
        field_of_view_deg: First and last azimuth that are produced, of a sensor with a turning head, from the next packet on.
        phase_lock: Whether its phase is locked, at the azimuth ``phase_lock_deg``.
        phase_lock_deg: Azimuth that its head passes at each pulse, where its phase is locked.
    """

    kind: Literal["sensor"] = "sensor"
    sensor: str
    window: WindowSpec | None = None
    laser: bool | None = None
    rotation_rate_rpm: int | None = None
    return_mode: ReturnModeName | None = None
    field_of_view_deg: tuple[int, int] | None = None
    phase_lock_deg: float | None = None
    phase_lock: bool | None = None

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        names = [*_SETTINGS, *(each.name for each in fields(ChangeableSettings))]
        yield any(getattr(self, name) is not None for name in names), f"{', '.join(names[:-1])} or {names[-1]} must be given"
        has_angle = (self.phase_lock is True) == (self.phase_lock_deg is not None)
        yield has_angle, "phase_lock_deg must be given with phase_lock = true, and with it alone"


@dataclass(frozen=True, kw_only=True)
class ClockChange(ChangeSpec):
    """Change the pulse at the input of a Velodyne: a cable that is unplugged, or a receiver that has found its satellites.

    Attributes:
        sensor: Name of the sensor.
        pps: State of the pulse. ``locked``: stamps follow it; any other: they count on from where they are.
        utc_epoch_ns: UTC of rig time 0 by that pulse, in ns since 1970; by default the rig's.
    """

    kind: Literal["clock"] = "clock"
    sensor: str
    pps: PulseWord
    utc_epoch_ns: int | None = None

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        epoch_ns = self.utc_epoch_ns
        yield epoch_ns is None or abs(epoch_ns) <= _LATEST_UTC_NS, f"utc_epoch_ns must be at most {_LATEST_UTC_NS}, got {epoch_ns}"


@dataclass(frozen=True, kw_only=True)
class ReplayChange(ChangeSpec):
    """Pause or resume a replay, or let it continue elsewhere in its capture.

    Attributes:
        replay: Name of the replay; empty: all replays.
        pause: True: packets that are due from now on wait; False: they go on, later by the length of the pause.
        seek_s: Capture time, from the capture's first packet, at which the replay continues.
    """

    kind: Literal["replay"] = "replay"
    replay: str = ""
    pause: bool | None = None
    seek_s: float | None = None

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield self.pause is not None or self.seek_s is not None, "pause or seek_s must be given"
        yield self.seek_s is None or 0.0 <= self.seek_s <= LATEST_S, f"seek_s must be 0 to {LATEST_S:.0e}, got {self.seek_s}"

    def concerns(self, replay: str) -> bool:
        """Whether it changes a replay of this name."""
        return self.replay in {"", replay}


@dataclass(frozen=True, kw_only=True)
class VehicleChange(ChangeSpec):
    """Change the wind around the vehicle, or put it elsewhere.

    Attributes:
        wind: The rig's ``[vehicle.wind]`` table from now on.
        position_m: Position of its legs' lowest point if it were level, as in ``[vehicle]``; it is at rest there.
        rotation_deg: Roll, pitch and yaw at that position.
        reset: True: it is as at the start: there, at rest, its rotors standing still, undamaged.
    """

    kind: Literal["vehicle"] = "vehicle"
    wind: WindSpec | None = None
    position_m: Vector | None = None
    rotation_deg: Vector | None = None
    reset: bool = False

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield self.wind is not None or self.position_m is not None or self.reset, "wind, position_m or reset must be given"
        yield self.rotation_deg is None or self.position_m is not None, "rotation_deg must be given with position_m"
        yield not self.reset or self.position_m is None, "reset must not be given with position_m"
        yield finite("position_m", self.position_m or ())
        yield finite("rotation_deg", self.rotation_deg or ())


@dataclass(frozen=True, kw_only=True)
class FaultChange(ChangeSpec):
    """Break something, from the change's time on.

    Attributes:
        fault: A table as ``[[fault]]`` of a rig. Its ``at_s``, from which its ramp and its end are counted, is the change's where it is not given.
    """

    kind: Literal["fault"] = "fault"
    fault: AnyFault

    @property
    def dated(self) -> FaultSpec:
        """The fault with its time."""
        return self.fault if self.fault.at_s else replace(self.fault, at_s=self.at_s or 0.0)


@dataclass(frozen=True, kw_only=True)
class ClearChange(ChangeSpec):
    """Mend what faults have broken.

    Attributes:
        name: Name or kind of the faults that end, or a pattern; by default all.
    """

    kind: Literal["clear"] = "clear"
    name: str = "*"


AnyChange = Annotated[
    AddChange
    | MoveChange
    | TravelChange
    | RemoveChange
    | WeatherChange
    | SensorChange
    | ClockChange
    | ReplayChange
    | VehicleChange
    | FaultChange
    | ClearChange,
    Discriminator("kind"),
]
CHANGE_KINDS: tuple[type[ChangeSpec], ...] = (
    AddChange,
    MoveChange,
    TravelChange,
    RemoveChange,
    WeatherChange,
    SensorChange,
    ClockChange,
    ReplayChange,
    VehicleChange,
    FaultChange,
    ClearChange,
)


@dataclass(frozen=True, kw_only=True)
class ScriptSpec:
    """A script.

    Attributes:
        change: Changes; those at one time are made in their order.
    """

    change: tuple[AnyChange, ...] = ()

    def __post_init__(self) -> None:
        untimed = [number for number, change in enumerate(self.change) if change.at_s is None]
        require(
            SCRIPT_CHANGES.rule(len(self.change)),
            *((False, f"change[{number}].at_s must be given") for number in untimed[:10]),
        )

    @property
    def in_time(self) -> tuple[ChangeSpec, ...]:
        """The changes by their times."""
        return tuple(sorted(self.change, key=lambda change: change.at_ns or 0))


@dataclass(frozen=True, kw_only=True)
class _OneChange:
    change: AnyChange


def parse_change(table: Mapping[str, Any]) -> ChangeSpec:
    """A change from its keys.

    Raises:
        ConfigError: with every fault, one a line.
    """
    found, faults = collect_faults(_OneChange, {"change": table})
    if found is None:
        raise ConfigError("\n".join(fault.removeprefix("change.").removeprefix("change: ") for fault in faults))
    return found.change


class Script(NamedTuple):
    """Timed changes and where they come from.

    Attributes:
        path: File, for faults.
        changes: Changes in the order of their times.
    """

    path: Path
    changes: tuple[ChangeSpec, ...]


def load_script(path: Path) -> Script:
    """The changes of a script.

    Raises:
        ConfigError: it cannot be read, or with every fault, one a line.
    """
    table = {"change": _read_lines(path)} if path.suffix == ".jsonl" else read_toml(path)
    return Script(path, parse_table(ScriptSpec, table, str(path)).in_time)


def _read_lines(path: Path) -> list[Any]:
    try:
        SCRIPT_BYTES.enforce(path.stat().st_size, str(path), ConfigError)
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise ConfigError(f"{path}: must be a readable file of JSON lines, got {reason}") from error
    found, faults = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            faults.append(f"{path}:{number}: must be a JSON object, got {error}")
    if faults:
        raise ConfigError("\n".join(faults[:10]))
    return found


def fault_table(fault: FaultSpec) -> dict[str, Any]:
    """The keys of a fault, as a rig has them; keys at their defaults are left out."""
    table: dict[str, Any] = adapter_of(type(fault)).dump_python(fault, mode="json", exclude_defaults=True)
    return {"kind": fault.kind, **table}


def change_table(change: ChangeSpec) -> dict[str, Any]:
    """The keys of a change, as a script has them; keys at their defaults are left out."""
    table: dict[str, Any] = adapter_of(type(change)).dump_python(change, mode="json", exclude_defaults=True)
    if isinstance(change, FaultChange):
        table["fault"] = fault_table(change.fault)
    return {"at_s": change.at_s, "kind": change.kind, **{key: value for key, value in table.items() if key not in {"at_s", "kind"}}}
