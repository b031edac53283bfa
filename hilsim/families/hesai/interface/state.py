"""State of a sensor behind PTC and HTTP: what clients have set, each as the payload that sets it, and when it has started.

=======  ============================  ====================================================================================
command  setting                       payload
=======  ============================  ====================================================================================
0x17     spin rate                     2: 300, 600 or 1200 rpm
0x18     sync angle                    1: enabled; 2: angle, 0.01 degrees
0x1b     trigger                       1: 0 by angle, 1 by time
0x1c     standby                       1: 0 running, 1 standby
0x1e     return mode                   1: ``RETURN_CODES``
0x1f     clock source                  1: 0 GPS, 1 PTP
0x20     destination                   4: address, 2: port, 2: port of GPS packets
0x21     network                       4: address, 4: mask, 4: gateway, 1: VLAN, 2: its number
0x22     field of view                 1: 0, all channels alike; 2: first, 2: last azimuth, 0.1 degrees, 0 to 3600
0x24     PTP                           1: profile, 0 IEEE 1588, 1 to 3 802.1AS; 1: domain; 1: transport; up to 4 more of the profile
0x2a     direction                     1: 0 clockwise, 1 counter-clockwise
0x39     PTP lock offset               1: microseconds
=======  ============================  ====================================================================================

All are kept over a reboot, as of a real unit. Nothing here knows a clock or a socket: who holds the state compares it before and after a request, and makes packets
follow. Sources as of ``protocol.ptc``. Not established: which values a real unit refuses.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from hilsim.families.hesai.protocol.ptc import Command, ReturnCode

MODEL_NUMBERS = {"Pandar40P": 0, "Pandar64": 2, "QT64": 15, "XT32": 25, "XT16": 26, "XT32M": 38}
"""Numbers of models in the inventory."""
_XT = ("last", "strongest", "last_strongest", "first", "last_first", "first_strongest")
_PANDAR = _XT[:3]
RETURN_CODES: Mapping[str, Mapping[str, int]] = {
    **{model: {name: code for code, name in enumerate(_XT)} for model in ("XT32", "XT16", "XT32M")},
    **{model: {name: code for code, name in enumerate(_PANDAR)} for model in ("Pandar40P", "Pandar64")},
    "QT64": {"last": 0, "last_first": 2, "first": 3},
}
"""Codes of return modes, by model and name of the mode, as packets have it."""
_RATES_RPM, _SWITCH = (300, 600, 1200), (b"\0", b"\1")
_WHOLE_TURN_CDEG, _WHOLE_TURN_DDEG = 36_000, 3600
_PTP_PROFILES, _PTP_DOMAINS = range(4), range(128)


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Facts of a unit.

    Attributes:
        model: Name of the model.
        serial: Serial number, at most 18 characters.
        mac: MAC address, 6 bytes.
        angles_deg: Elevation and azimuth of each channel.
        is_counted: Whether packets have their number.
    """

    model: str
    serial: str
    mac: bytes
    angles_deg: tuple[tuple[float, float], ...]
    is_counted: bool = True


class Setting(NamedTuple):
    """A setting.

    Attributes:
        sizes: Bytes that its payload may have.
        accepts: Whether a payload of such a size is accepted, by a model.
        factory: Payload of the factory.
    """

    sizes: tuple[int, ...]
    accepts: Callable[[bytes, str], bool]
    factory: bytes


def _switch() -> Setting:
    return Setting((1,), lambda payload, _: payload in _SWITCH, b"\0")


def numbers_of(payload: bytes, *, at: int = 0) -> tuple[int, ...]:
    """Numbers of two bytes each, from a byte on."""
    return tuple(int.from_bytes(payload[place : place + 2], "big") for place in range(at, len(payload) - 1, 2))


SETTINGS: Mapping[int, Setting] = {
    Command.SPIN_RATE: Setting((2,), lambda payload, _: numbers_of(payload)[0] in _RATES_RPM, (600).to_bytes(2, "big")),
    Command.SYNC_ANGLE: Setting((3,), lambda payload, _: payload[:1] in _SWITCH and numbers_of(payload, at=1)[0] <= _WHOLE_TURN_CDEG, bytes(3)),
    Command.TRIGGER: _switch(),
    Command.STANDBY: _switch(),
    Command.RETURN_MODE: Setting((1,), lambda payload, model: payload[0] in RETURN_CODES[model].values(), b"\0"),
    Command.CLOCK_SOURCE: _switch(),
    Command.DESTINATION: Setting(
        (8,), lambda payload, _: payload[0] > 0 and min(numbers_of(payload, at=4)) > 0, bytes((255, 255, 255, 255, 9, 64, 39, 126))
    ),
    Command.NETWORK: Setting(
        (15,), lambda payload, _: payload[12:13] in _SWITCH, bytes((192, 168, 1, 201, 255, 255, 255, 0, 192, 168, 1, 1, 0, 0, 0))
    ),
    Command.FIELD_OF_VIEW: Setting(
        (5,), lambda payload, _: not payload[0] and max(numbers_of(payload, at=1)) <= _WHOLE_TURN_DDEG, bytes((0, 0, 0, 14, 16))
    ),
    Command.PTP: Setting(
        (3, 4, 6, 7),
        lambda payload, _: payload[0] in _PTP_PROFILES and payload[1] in _PTP_DOMAINS and payload[2:3] in _SWITCH,
        bytes((0, 0, 0, 1, 1, 0)),
    ),
    Command.DIRECTION: _switch(),
    Command.LOCK_OFFSET: Setting((1,), lambda _payload, _: True, b"\1"),
}


@dataclass(frozen=True, kw_only=True)
class HesaiState:
    """State of a sensor.

    Attributes:
        unit: Facts of the unit.
        values: Payload of each setting.
        powered_ns: Rig time of the last start.
        starts: Number of starts.
        is_starting: Whether it starts, and neither sends nor answers.
    """

    unit: Unit
    values: Mapping[int, bytes]
    powered_ns: int = 0
    starts: int = 1
    is_starting: bool = False

    @classmethod
    def of(cls, unit: Unit, given: Mapping[int, bytes]) -> Self:
        """A sensor that is switched on at rig time 0; ``given`` are settings that differ from those of the factory."""
        return cls(unit=unit, values={**{command: setting.factory for command, setting in SETTINGS.items()}, **given})

    @property
    def shown(self) -> tuple[object, ...]:
        """Parts that packets show."""
        return self.values, self.is_starting

    @property
    def kept(self) -> dict[str, str]:
        """Parts that are saved."""
        return {f"0x{command:02x}": payload.hex() for command, payload in self.values.items()}

    @property
    def is_sending(self) -> bool:
        """Whether packets are sent."""
        return not self.is_starting and self.values[Command.STANDBY] == b"\0"

    @property
    def destination(self) -> tuple[str, tuple[int, int]]:
        """Address of packets, their port, and that of GPS packets."""
        payload = self.values[Command.DESTINATION]
        port, gps_port = numbers_of(payload, at=4)
        return ".".join(map(str, payload[:4])), (port, gps_port)

    def number(self, command: int) -> int:
        """A setting of one number."""
        return int.from_bytes(self.values[command], "big")

    def written(self, command: int, payload: bytes) -> tuple[Self, ReturnCode]:
        """Write a setting: the state then, and the result."""
        setting = SETTINGS.get(command)
        if setting is None:
            return self, ReturnCode.UNSUPPORTED
        if len(payload) not in setting.sizes:
            return self, ReturnCode.INVALID_DATA
        if not setting.accepts(payload, self.unit.model):
            return self, ReturnCode.INVALID_PARAMETER
        if self.values[command] == payload:
            return self, ReturnCode.OK
        return replace(self, values={**self.values, command: payload}), ReturnCode.OK

    def rebooted(self, at_ns: int) -> Self:
        """Start anew at a rig time with the present settings."""
        return replace(self, powered_ns=at_ns, starts=self.starts + 1, is_starting=True)

    def started(self) -> Self:
        """The end of a start."""
        return replace(self, is_starting=False)
