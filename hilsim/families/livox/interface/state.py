"""State of a sensor behind its control interface: values of its keys, and its work state, a function of rig time and of what hosts have asked for.

    SELFCHECK ─► IDLE ─(target 1 or 9)─► MOTOR STARTUP ─► READY ─(target 1)─► SAMPLING

Settings stay over a reboot, so one that has sampled samples again by itself. Nothing here knows a clock or a socket: who holds the state compares it before and
after a request, and makes packets follow.

Source: Livox wiki, "Mid-360 communication protocol". How long each state of a Mid-360 lasts is not established; a HAP checks itself for about 5 s and starts
within 10 s. ``boot_ns``, the time from a start to the first points, is divided as ``_SHARES``: by default 5 s, 2.5 s and 0.5 s.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from hilsim.families.livox.interface.keys import (
    FIRMWARE_KIND,
    IMU_ENABLED,
    IMU_HOST,
    POINT_HOST,
    SERIAL,
    STATE_HOST,
    TARGET,
    WORK_STATE,
    Destination,
    Key,
    Ports,
    Work,
    address_bytes,
    fault_of,
    keys_of,
)
from hilsim.families.livox.protocol.commands import ReturnCode

_SHARES = (10, 5, 1)
"""Sixteenths of ``boot_ns`` in SELFCHECK, MOTOR STARTUP and READY."""
_VERSION_APP, _VERSION_LOADER, _VERSION_HARDWARE = bytes((13, 18, 2, 38)), bytes((13, 2, 0, 0)), bytes((3, 0, 0, 0))
_CORE_CDEG = 4500
_APPLICATION = 1


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Facts of a unit.

    Attributes:
        model: ``mid360``, ``mid360s`` or ``hap``.
        device_type: Number by which hosts tell models apart.
        serial: Serial number, at most 16 characters.
        title: Product information, at most 63 characters.
        mac: MAC address, 6 bytes.
        address: IPv4 address.
        ports: UDP ports.
        boot_ns: Time from a start to the first points.
    """

    model: str
    device_type: int
    serial: str
    title: str
    mac: bytes
    address: str
    ports: Ports
    boot_ns: int

    @property
    def keys(self) -> dict[int, Key]:
        """Keys that its model has."""
        return keys_of(self.model)


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What changes by itself.

    Attributes:
        now_ns: Rig time.
        local_ns: Time of the sensor's clock, as in its stamps.
        time_type: Source of that time: 0 none, 1 PTP, 2 GPS.
    """

    now_ns: int
    local_ns: int
    time_type: int


@dataclass(frozen=True, kw_only=True)
class LidarState:
    """State of a sensor.

    Attributes:
        unit: Facts of the unit.
        factory: Values of the keys that hosts write, as the rig has the sensor.
        values: Values now.
        powered_ns: Rig time of the last start.
        spun_ns: Rig time from which the motor starts; None while it is off.
        starts: Number of starts.
    """

    unit: Unit
    factory: Mapping[int, bytes]
    values: Mapping[int, bytes]
    powered_ns: int = 0
    spun_ns: int | None = None
    starts: int = 1

    @classmethod
    def of(cls, unit: Unit, given: Mapping[int, bytes]) -> Self:
        """A sensor that is switched on at rig time 0; ``given`` are values that differ from those of the factory."""
        address = {0x0004: address_bytes(unit.address) + bytes((255, 255, 255, 0)) + address_bytes(unit.address)[:3] + b"\x01"}
        factory = {number: key.factory for number, key in unit.keys.items() if key.accepts is not None} | address | dict(given)
        return cls(unit=unit, factory=factory, values=factory, starts=0).restarted(0)

    # Work state

    @property
    def target(self) -> Work:
        """Work state that hosts have asked for."""
        return Work(self.values[TARGET][0])

    def _steps_ns(self) -> list[tuple[int, Work]]:
        """Rig times at which work states begin, in order, since the last start."""
        checked, started, ready = (self.unit.boot_ns * share // sum(_SHARES) for share in _SHARES)
        steps = [(self.powered_ns, Work.SELFCHECK), (self.powered_ns + checked, Work.IDLE)]
        if self.spun_ns is not None:
            steps += [(self.spun_ns, Work.MOTOR_STARTUP), (self.spun_ns + started, Work.READY)]
            if self.target is Work.SAMPLING:
                steps.append((self.spun_ns + started + ready, Work.SAMPLING))
        return steps

    def work(self, now_ns: int) -> Work:
        """Work state at a rig time."""
        found = Work.SELFCHECK
        for at_ns, work in self._steps_ns():
            found = work if at_ns <= now_ns else found
        return found

    def next_step_ns(self, now_ns: int) -> int | None:
        """Rig time at which the work state changes next; None if it does not by itself."""
        return min((at_ns for at_ns, _ in self._steps_ns() if at_ns > now_ns), default=None)

    def sends_points(self, now_ns: int) -> bool:
        """Whether points are sent at a rig time."""
        return self.work(now_ns) is Work.SAMPLING and self.point_host.port > 0

    def sends_imu(self, now_ns: int) -> bool:
        """Whether inertial packets are sent at a rig time."""
        return self.work(now_ns) is Work.SAMPLING and self.imu_host.port > 0 and bool(self.values[IMU_ENABLED][0])

    # Settings

    @property
    def shown(self) -> Mapping[int, bytes]:
        """Parts that packets show."""
        return self.values

    @property
    def kept(self) -> dict[str, str]:
        """Parts that are saved."""
        return {f"0x{key:04x}": value.hex() for key, value in self.values.items()}

    @property
    def point_host(self) -> Destination:
        """Destination of points."""
        return Destination.read(self.values[POINT_HOST])

    @property
    def imu_host(self) -> Destination:
        """Destination of inertial packets."""
        return Destination.read(self.values[IMU_HOST])

    @property
    def state_host(self) -> Destination:
        """Destination of push messages."""
        return Destination.read(self.values[STATE_HOST])

    def written(self, pairs: Iterable[tuple[int, bytes]], now_ns: int) -> tuple[Self, ReturnCode, int]:
        """Write keys at a rig time, all of them or none: the state then, the code, and the key that is refused (0: none)."""
        values, keys = dict(self.values), self.unit.keys
        for number, value in pairs:
            code = fault_of(number, value, keys, self.unit.ports)
            if code is not ReturnCode.OK:
                return self, code, number
            values[number] = value
        state = replace(self, values=values)
        checked_ns = next(at_ns for at_ns, work in self._steps_ns() if work is Work.IDLE)
        if state.target is Work.IDLE:
            state = replace(state, spun_ns=None)
        elif state.spun_ns is None:
            state = replace(state, spun_ns=max(now_ns, checked_ns))
        return state, ReturnCode.OK, 0

    def restarted(self, at_ns: int) -> Self:
        """Start anew at a rig time with the present settings."""
        started = replace(self, starts=self.starts + 1, powered_ns=at_ns, spun_ns=None)
        return started.written((), at_ns)[0]

    # Values

    def value(self, number: int, conditions: Conditions) -> bytes:
        """Value of a key that the model has."""
        if number in self.values:
            return self.values[number]
        unit, synced_ns = self.unit, conditions.local_ns if conditions.time_type else 0
        facts = {
            SERIAL: unit.serial.encode("ascii"),
            0x8001: unit.title.encode("ascii"),
            0x8002: _VERSION_APP,
            0x8003: _VERSION_LOADER,
            0x8004: _VERSION_HARDWARE,
            0x8005: unit.mac,
            WORK_STATE: bytes([self.work(conditions.now_ns)]),
            0x8007: struct.pack("<i", _CORE_CDEG),
            0x8008: struct.pack("<I", self.starts),
            0x8009: struct.pack("<Q", conditions.local_ns),
            0x800A: struct.pack("<Q", synced_ns),
            0x800C: bytes([conditions.time_type]),
            FIRMWARE_KIND: bytes([_APPLICATION]),
        }
        return facts.get(number, b"").ljust(unit.keys[number].size, b"\0")
