"""Tables of faults, one class each, made of the catalogue's rows."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from fnmatch import fnmatchcase
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Discriminator

from hilsim.errors import require
from hilsim.faults.catalogue import FAULTS, RAW_EFFECTS, REQUIRED, FaultRow, Key, NetworkAct, Place

LATEST_S = 1e8
"""Latest rig time of a fault, three years."""
NAME_LENGTH = 64


@dataclass(frozen=True, kw_only=True)
class FaultSpec:
    """Keys of every fault.

    Attributes:
        name: Name by which it is cleared, and which metrics and events have; empty: its kind.
        on: Name of what it befalls, or a pattern (``roof*``); ``*``: everything that it can.
        at_s: Rig time at which it begins.
        for_s: How long it lasts; missing: until it is cleared.
        ramp_s: Time from its begin in which it comes. ``ramp = "exponential"``: time constant.
        ramp_out_s: Time before its end in which it goes.
        ramp: Way in which it comes: ``linear``, or ``exponential``: 1 - e^(-t / ramp_s).
        seed: Seed of its random numbers, beside the rig's.
    """

    row: ClassVar[FaultRow]
    kind: str = ""
    name: str = ""
    on: str = "*"
    at_s: float = 0.0
    for_s: float | None = None
    ramp_s: float = 0.0
    ramp_out_s: float = 0.0
    ramp: Literal["linear", "exponential"] = "linear"
    seed: int = 0

    def __post_init__(self) -> None:
        require(*self.rules())

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Every rule with its fault."""
        for word, text in (("name", self.name), ("on", self.on)):
            yield text.isprintable() and len(text) <= NAME_LENGTH, f"{word} must be at most {NAME_LENGTH} printable characters, got {text[:80]!r}"
        yield bool(self.on), "on must name something, or be *, got an empty text"
        yield 0.0 <= self.at_s <= LATEST_S, f"at_s must be 0 to {LATEST_S:.0e}, got {self.at_s}"
        yield self.for_s is None or 0.0 < self.for_s <= LATEST_S, f"for_s must be above 0 and at most {LATEST_S:.0e}, got {self.for_s}"
        for word, ramp_s in (("ramp_s", self.ramp_s), ("ramp_out_s", self.ramp_out_s)):
            yield 0.0 <= ramp_s <= LATEST_S, f"{word} must be 0 to {LATEST_S:.0e}, got {ramp_s}"
        yield self.ramp_out_s == 0.0 or self.for_s is not None, "for_s must be given with ramp_out_s, got none"
        yield 0 <= self.seed < 2**32, f"seed must be 0 to 2^32 - 1, got {self.seed}"
        hold_ms, every_ms = getattr(self, "hold_ms", 0.0), getattr(self, "every_ms", math.inf)
        yield hold_ms < every_ms, f"hold_ms must be less than every_ms, got {hold_ms} and {every_ms}"
        off_ms, down_ms = getattr(self, "off_ms", 0.0), getattr(self, "down_ms", math.inf)
        yield off_ms <= down_ms, f"down_ms must be off_ms or more, got {down_ms} and {off_ms}"
        for key in self.row.keys:
            yield from _key_rules(key, getattr(self, key.name))

    @property
    def label(self) -> str:
        """Its name, or its kind."""
        return self.name or self.kind

    @property
    def begin_ns(self) -> int:
        """Rig time at which it begins."""
        return round(self.at_s * 1e9)

    @property
    def end_ns(self) -> int:
        """Rig time at which it has ended."""
        return 2**62 if self.for_s is None else self.begin_ns + round(self.for_s * 1e9)

    def befalls(self, name: str) -> bool:
        """Whether it befalls what has a name: a sensor, or a flow ``"<sensor>/<flow>"``, which its sensor's name befalls as well."""
        return fnmatchcase(name, self.on) or ("/" in name and fnmatchcase(name.partition("/")[0], self.on))

    def can_befall(self, sender: str) -> bool:
        """Whether it befalls a sensor, a replay or another sender of a name, or a flow of it."""
        return fnmatchcase(sender, self.on.partition("/")[0])

    def is_called(self, name: str) -> bool:
        """Whether it has a name or kind, or one of a pattern."""
        return fnmatchcase(self.label, name) or fnmatchcase(self.kind, name)

    @property
    def values(self) -> tuple[float, ...]:
        """Values of its function (``catalogue.Effect``)."""
        return self._given(self.row.values)

    @property
    def network(self) -> NetworkAct | None:
        """What it does to datagrams, with its values; None: nothing."""
        act = NetworkAct(self.row.effect, self.row.values) if self.row.place == Place.NETWORK else self.row.also
        return None if act is None else act._replace(values=self._given(act.values))

    def _given(self, values: tuple[float | str, ...]) -> tuple[float, ...]:
        return tuple(float(getattr(self, each) if isinstance(each, str) else each) for each in values)


def _key_rules(key: Key, value: Any) -> Iterator[tuple[bool, str]]:
    values = value if isinstance(value, tuple) else (value,)
    holds = all(key.least <= each <= key.most for each in values)
    each = "each be " if isinstance(value, tuple) else "be "
    yield holds, f"{key.name} must {each}{key.least:g} to {key.most:g}, got {', '.join(map(str, values[:8]))}"
    if key.name == "azimuth_deg":
        yield (
            values[0] != values[1] and values[0] < 360.0,
            f"azimuth_deg must be two angles that differ, from 0 and 360 for a whole turn, got {value}",
        )
    if key.name == "elevation_deg":
        yield values[0] <= values[1], f"elevation_deg must be the lower one first, got {value}"
    if key.default is REQUIRED:
        yield bool(values), f"{key.name} must be given, got none"


def _field_of(key: Key) -> tuple[Any, ...]:
    kind = key.type or (tuple[float, float] if isinstance(key.default, tuple) else type(key.default))
    return (key.name, kind) if key.default is REQUIRED else (key.name, kind, field(default=key.default))


def _class_of(row: FaultRow) -> type[FaultSpec]:
    """Dataclass of a row's table; at the top of this module, because rigs go to other processes."""
    name = "".join(map(str.capitalize, row.kind.split("_"))) + "Fault"
    keys = "".join(f"    {key.name}: {key.meaning}, {key.least:g} to {key.most:g}.\n" for key in row.keys)
    text = f"{row.meaning}\n\nAttributes:\n{keys}" if keys else row.meaning
    made = make_dataclass(
        name,
        [("kind", Literal[row.kind], field(default=row.kind)), *map(_field_of, row.keys)],
        bases=(FaultSpec,),
        namespace={"row": row, "__doc__": text, "__module__": __name__},
        frozen=True,
        kw_only=True,
    )
    globals()[name] = made
    return made


FAULT_SPECS: dict[str, type[FaultSpec]] = {row.kind: _class_of(row) for row in FAULTS}
"""Classes of faults' tables, by kind."""

KINDS = {row.kind: number for number, row in enumerate(FAULTS)}
"""Places of kinds in the catalogue."""

if TYPE_CHECKING:
    AnyFault = FaultSpec
    """Table of any fault, told by its ``kind``."""
else:
    AnyFault = Annotated[reduce(or_, FAULT_SPECS.values()), Discriminator("kind")]


def faults_on(faults: tuple[FaultSpec, ...], name: str, place: Place) -> tuple[FaultSpec, ...]:
    """Faults of a place that befall what has a name."""
    return tuple(fault for fault in faults if fault.row.place == place and fault.befalls(name))


_BEFALLEN = {
    Place.VEHICLE: "a vehicle that a flight controller reads over MAVLink",
    Place.MOTOR: "a vehicle",
    Place.LINE: "a device on a serial port, or a vehicle with one",
    Place.RANGE: "a range sensor",
}
"""What ``on`` of a fault names, of places beside sensors and the network."""


def fault_rules(
    faults: tuple[FaultSpec, ...], sensors: Sequence[str], senders: Mapping[str, bool] | None = None, others: Sequence[tuple[Place, str]] = ()
) -> Iterator[tuple[bool, str]]:
    """Check that each fault befalls something that a rig has.

    Args:
        faults: The rig's faults.
        sensors: Names of its sensors.
        senders: Names of all that sends, and whether it sends whole frames.
        others: Places and names of what else faults can befall.
    """
    senders = dict.fromkeys(sensors, False) if senders is None else senders
    for number, fault in enumerate(faults):
        names = ", ".join(sensors) or "none"
        if fault.row.place == Place.SENSOR:
            yield any(map(fault.befalls, sensors)), f'fault[{number}].on must name a sensor of the rig ({names}), or be a pattern, got "{fault.on}"'
            continue
        if fault.row.place != Place.NETWORK:
            found = [name for place, name in others if place == fault.row.place]
            text = f"{_BEFALLEN[fault.row.place]} of the rig ({', '.join(found) or 'none'})"
            yield any(map(fault.befalls, found)), f'fault[{number}].on must name {text}, or be a pattern, got "{fault.on}"'
            continue
        befallen = {name: is_raw for name, is_raw in senders.items() if fault.can_befall(name)}
        names = ", ".join(senders) or "none"
        yield bool(befallen), f'fault[{number}].on must name what sends ({names}), a flow of it like NAME/data, or be a pattern, got "{fault.on}"'
        is_made = fault.row.effect not in RAW_EFFECTS or not befallen or any(befallen.values())
        yield is_made, f'fault[{number}]: {fault.kind} needs frames, network.mode = "ethernet", and {", ".join(befallen)} has mode = "udp"'
