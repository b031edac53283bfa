"""Specification of poses from another simulator: the rig's table ``[external]``."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hilsim.errors import require
from hilsim.limits import MOVED_OBJECTS
from hilsim.transmit.hosts import is_ipv4
from hilsim.world.scene.object_specs import MeshSpec, ObjectSpec, Rule
from hilsim.world.scene.shape_specs import BoxSpec, CapsuleSpec, ConeSpec, CylinderSpec, EllipsoidSpec, PlaneSpec, SphereSpec

_MAX_PATH_BYTES = 100
_LONGEST_MS = 10_000.0
_FASTEST_MPS = 10_000.0


@dataclass(frozen=True, kw_only=True)
class ExternalObjectSpec:
    """An object that another simulator moves; it is seen from its first pose on.

    Attributes:
        id: Id of the object in messages, at least 1.
        speed_max_mps: Largest speed of the object.
        mesh: A mesh file; its path is relative to the rig.
        plane: A rectangle.
        box: A box.
        cylinder: An upright cylinder.
        sphere: A sphere.
        cone: An upright cone.
        capsule: An upright capsule.
        ellipsoid: An ellipsoid.
    """

    id: int
    speed_max_mps: float = 100.0
    mesh: MeshSpec | None = None
    plane: PlaneSpec | None = None
    box: BoxSpec | None = None
    cylinder: CylinderSpec | None = None
    sphere: SphereSpec | None = None
    cone: ConeSpec | None = None
    capsule: CapsuleSpec | None = None
    ellipsoid: EllipsoidSpec | None = None

    def __post_init__(self) -> None:
        given = self._given()
        require(
            (1 <= self.id < 1 << 32, f"id must be 1 to {(1 << 32) - 1}, got {self.id}"),
            _bounded("speed_max_mps", self.speed_max_mps, _FASTEST_MPS),
            (len(given) == 1, f"one of mesh, plane, box, cylinder, sphere, cone, capsule and ellipsoid must be given, got {len(given)}"),
            (all(shape.name.strip() for shape in given), "name of the object must be given"),
            (all(shape.motion is None for shape in given), "motion must not be given: another simulator moves the object"),
            (not any(shape.stand_on_ground for shape in given), "stand_on_ground must not be given: another simulator moves the object"),
        )

    def _given(self) -> tuple[ObjectSpec, ...]:
        shapes = (self.mesh, self.plane, self.box, self.cylinder, self.sphere, self.cone, self.capsule, self.ellipsoid)
        return tuple(shape for shape in shapes if shape is not None)

    @property
    def shape(self) -> ObjectSpec:
        """Shape of the object in the object's own frame."""
        return self._given()[0]


@dataclass(frozen=True, kw_only=True)
class ExternalSpec:
    """Another simulator, a robot or a motion-capture system that moves the platform (``platform.kind = "external"``) and objects.

    Attributes:
        listen: ``udp:ADDRESS:PORT`` or ``unix:PATH`` at which messages arrive; a path is relative to the rig.
        time: ``live``: poses are followed as they arrive; ``lockstep``: the other side releases each stretch of rig time; ``replay``: poses come from ``file``.
        delay_ms: Time from a pose to the firings that are measured from there. A pose that arrives in time is followed exactly: the delay must cover the time
            ahead at which packets are rendered, the interval between two poses and the jitter of their arrival.
        clock: Clock of the time in messages: ``sender``: any, of which the fastest message of two seconds counts as sent when it arrives; ``utc`` or
            ``monotonic``: that of this host, in nanoseconds.
        extrapolate_ms: Longest time without a message for which motion is carried on; then the sender counts as silent.
        on_silence: Behaviour of the platform while the sender is silent: ``hold``: it stops; ``coast``: it goes on with its last velocity and rates;
            ``power_off``: it stops, and sensors send nothing, as without power. Objects are not seen meanwhile.
        speed_max_mps: Largest speed of the platform; a pose that is farther away is refused.
        pace: Sending in lockstep. ``real``: packets leave as far apart as they are due, later where the other side is late; ``at once``: when they are rendered.
        restart: Effect of a new sender in lockstep. ``continue``: its time begins where rig time is; ``again``: rig time begins again at 0.
        file: Recording to replay, relative to the rig.
        record: Recording of the poses that sensors saw, for a later replay; relative to the rig, replaced at each start.
        object: Objects that are moved.
    """

    listen: str = "udp:127.0.0.1:2400"
    time: Literal["live", "lockstep", "replay"] = "live"
    delay_ms: float = 50.0
    clock: Literal["sender", "utc", "monotonic"] = "sender"
    extrapolate_ms: float = 200.0
    on_silence: Literal["hold", "coast", "power_off"] = "hold"
    speed_max_mps: float = 100.0
    pace: Literal["real", "at once"] = "real"
    restart: Literal["continue", "again"] = "continue"
    file: str = ""
    record: str = ""
    object: tuple[ExternalObjectSpec, ...] = ()

    def __post_init__(self) -> None:
        require(
            (self._has_address(), f'listen must be udp:ADDRESS:PORT like udp:127.0.0.1:2400, or unix:PATH of at most 100 bytes, got "{self.listen}"'),
            _bounded("delay_ms", self.delay_ms, _LONGEST_MS, least=0.0),
            _bounded("extrapolate_ms", self.extrapolate_ms, _LONGEST_MS),
            _bounded("speed_max_mps", self.speed_max_mps, _FASTEST_MPS),
            ((self.time == "replay") == bool(self.file), 'file must be given for time "replay" and only for it'),
            (self.time != "replay" or not self.record, 'record must not be given for time "replay", whose file it would repeat'),
            MOVED_OBJECTS.rule(len(self.object)),
            *self._object_rules(),
        )

    def _has_address(self) -> bool:
        kind, _, place = self.listen.partition(":")
        if kind == "unix":
            return 0 < len(place.encode()) <= _MAX_PATH_BYTES
        host, _, port = place.rpartition(":")
        return kind == "udp" and is_ipv4(host) and port.isascii() and port.isdigit() and int(port) <= 65_535

    def _object_rules(self) -> Iterator[Rule]:
        for what, values in (("id", [each.id for each in self.object]), ("name", [each.shape.name for each in self.object])):
            repeated = sorted(str(value) for value, count in Counter(values).items() if count > 1)
            yield not repeated, f"{what} of objects must differ, got {', '.join(repeated)} more than once"

    @property
    def path(self) -> str:
        """Path of ``listen``; empty for UDP."""
        kind, _, place = self.listen.partition(":")
        return place if kind == "unix" else ""

    @property
    def endpoint(self) -> tuple[str, int]:
        """Address and port of ``listen`` for UDP."""
        host, _, port = self.listen.partition(":")[2].rpartition(":")
        return host, int(port)


def _bounded(name: str, value: float, most: float, *, least: float | None = None) -> Rule:
    is_within = math.isfinite(value) and value <= most and (value > 0.0 if least is None else value >= least)
    return is_within, f"{name} must be {'above 0' if least is None else f'{least:g}'} to {most:g}, got {value}"
