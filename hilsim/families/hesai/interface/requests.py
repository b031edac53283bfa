"""Requests by PTC and their answers: functions of the sensor's state.

=========  ==================  ================================================================================================
command    request             answer
=========  ==================  ================================================================================================
0x05       calibration         text: a line of names, and channel, elevation and azimuth of each channel in degrees
0x06       PTP diagnostics     1 byte, 1 to 4: status 16, port 26, time 50, grandmaster 8 bytes, as linuxptp has them
0x07       inventory           120: serial number 18, date 16, MAC 6, four versions 16 each, zero angle 2, model 1, motor 1, lines 1
0x08       config              47: addresses, ports and settings; angles in 0.01 degrees
0x09       status              54: uptime 4, rpm 2, eight temperatures 4 each in 0.01 degrees, locks, starts 4, minutes 4, PTP 1
0x23       field of view       as 0x22 sets it
0x26       PTP                 1: whether it is used; as 0x24 sets it
0x27       monitor             64: current 0.01 mA, voltage 0.01 V, power 0.01 W, phase 0.01 degrees, 4 each
0x3a       PTP lock offset     as 0x39 sets it
0x10 0x25  reboot, reset       nothing; the sensor starts anew
settings   ``state.SETTINGS``  nothing
=========  ==================  ================================================================================================

A sync angle of at most 360 is one in degrees, another one in 0.01 degrees: nebula sets degrees and reads 0.01 degrees, and what a real unit takes is not settled.
A payload of a wrong length has the result 3, a wrong value 1, another command 5, what the rig cannot do 7: chosen, no source says which fault a real unit gives.
Versions, temperatures, current and voltage are plausible and constant.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hilsim.families.hesai.interface.state import MODEL_NUMBERS, SETTINGS, HesaiState, numbers_of
from hilsim.families.hesai.protocol.ptc import Answer, Command, Request, ReturnCode

GPS, PTP = 0, 1
"""Sources of time."""
_NS_PER_S = 1_000_000_000
_FREE, _LOCKED = 0, 2
_LISTENING, _SLAVE = 4, 9
_INVENTORY = struct.Struct(">18s16s6s16s16s16s16sHBBB11x")
_STATUS = struct.Struct(">IH8iBBIIB5x")
_MONITOR = struct.Struct(">4i48x")
_PTP_STATUS, _PTP_PORT = struct.Struct(">qii"), struct.Struct(">8sHBbqbBbBbB")
_PTP_TIME, _PTP_GRANDMASTER = struct.Struct(">qqiiHHQHi8s"), struct.Struct(">IhBB")
_TEMPERATURES_CDEG = (3810, 3790, 4120, 4090, 3950, 4210, 4180, 4060)
CURRENT_CMA, VOLTAGE_CV, POWER_CW = 79_000, 1_200, 948
_MASTER_ID = bytes.fromhex("0200 00ff fe00 0001")
_CLOCK_QUALITY, _TAI_OFFSET_S, _TIME_FLAGS, _FROM_GPS = 0x06_21_4E5D, 37, 0x3C, 0x20


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What changes by itself.

    Attributes:
        now_ns: Rig time.
        utc_ns: UTC.
        is_locked: Whether the clock follows its source.
    """

    now_ns: int
    utc_ns: int = 0
    is_locked: bool = False


def outcome_of(state: HesaiState, request: Request, conditions: Conditions) -> tuple[HesaiState, Answer]:
    """State after a request, the same object if nothing changes, and the answer, once packets follow."""
    command, payload = request
    if command in SETTINGS:
        then, code = state.written(command, _in_hundredths(payload) if command == Command.SYNC_ANGLE else payload)
        return then, Answer(code)
    is_diagnosis = command == Command.PTP_DIAGNOSTICS
    if command not in _READ and command not in (Command.PTP_DIAGNOSTICS, Command.REBOOT, Command.RESET):
        return state, Answer(ReturnCode.UNSUPPORTED)
    if len(payload) != is_diagnosis:
        return state, Answer(ReturnCode.INVALID_DATA)
    if command in (Command.REBOOT, Command.RESET):
        return state.rebooted(conditions.now_ns), Answer()
    read = _DIAGNOSES.get(payload[0]) if is_diagnosis else _READ[command]
    return state, Answer(ReturnCode.INVALID_PARAMETER) if read is None else Answer(payload=read(state, conditions))


def _in_hundredths(payload: bytes) -> bytes:
    """Payload of a sync angle, which clients give in degrees, at most 360, or in 0.01 degrees."""
    angle = int.from_bytes(payload[1:], "big")
    return payload[:1] + (angle * 100 % 36_000).to_bytes(2, "big") if len(payload) == 3 and angle <= 360 else payload


def _calibration(state: HesaiState, _: Conditions) -> bytes:
    rows = (f"{channel},{elevation:.3f},{azimuth:.3f}\n" for channel, (elevation, azimuth) in enumerate(state.unit.angles_deg, 1))
    return "".join(("Channel,Elevation,Azimuth\n", *rows)).encode()


def _inventory(state: HesaiState, _: Conditions) -> bytes:
    unit = state.unit
    texts = (unit.serial.encode(), b"2026-01-01", unit.mac, b"1.0.0", b"1.0.0", b"1.0.0", b"1.0.0")
    return _INVENTORY.pack(*texts, 0, MODEL_NUMBERS[unit.model], 0, len(unit.angles_deg))


def _config(state: HesaiState, _: Conditions) -> bytes:
    values, network = state.values, state.values[Command.NETWORK]
    first, last = (10 * angle for angle in numbers_of(values[Command.FIELD_OF_VIEW], at=1))
    return b"".join(
        (
            network[:12],
            values[Command.DESTINATION],
            values[Command.SPIN_RATE],
            values[Command.SYNC_ANGLE],
            struct.pack(">HH", first, last),
            values[Command.CLOCK_SOURCE],
            bytes([state.unit.is_counted]),
            values[Command.TRIGGER],
            values[Command.RETURN_MODE],
            values[Command.STANDBY],
            b"\0",  # the motor has no fault
            network[12:],
            bytes(9),  # sentences of GPRMC, no noise filter, no map of reflectivity, reserved
        )
    )


def is_following(state: HesaiState, conditions: Conditions, source: int) -> bool:
    """Whether the clock follows a source."""
    return conditions.is_locked and state.number(Command.CLOCK_SOURCE) == source


def _status(state: HesaiState, conditions: Conditions) -> bytes:
    uptime_s = (conditions.now_ns - state.powered_ns) // _NS_PER_S
    rpm = state.number(Command.SPIN_RATE) if state.is_sending else 0
    by_gps, by_ptp = (is_following(state, conditions, source) for source in (GPS, PTP))
    return _STATUS.pack(uptime_s, rpm, *_TEMPERATURES_CDEG, by_gps, by_gps, state.starts, uptime_s // 60, _LOCKED if by_ptp else _FREE)


def _ptp_port_state(state: HesaiState, conditions: Conditions) -> int:
    return _SLAVE if is_following(state, conditions, PTP) else _LISTENING


def _ptp_port(state: HesaiState, conditions: Conditions) -> bytes:
    mac = state.unit.mac
    return _PTP_PORT.pack(mac[:3] + b"\xff\xfe" + mac[3:], 1, _ptp_port_state(state, conditions), 0, 0, 1, 3, 0, 1, 0, 2)


def _ptp_time(state: HesaiState, conditions: Conditions) -> bytes:
    has_master = is_following(state, conditions, PTP)
    return _PTP_TIME.pack(0, conditions.utc_ns if has_master else 0, 0, 0, 0, 0, 0, 0, has_master, _MASTER_ID if has_master else bytes(8))


Reader = Callable[[HesaiState, Conditions], bytes]
_DIAGNOSES: Mapping[int, Reader] = {
    1: lambda state, conditions: _PTP_STATUS.pack(0, _ptp_port_state(state, conditions), 0),
    2: _ptp_port,
    3: _ptp_time,
    4: lambda _state, _: _PTP_GRANDMASTER.pack(_CLOCK_QUALITY, _TAI_OFFSET_S, _TIME_FLAGS, _FROM_GPS),
}
_READ: Mapping[int, Reader] = {
    Command.CALIBRATION: _calibration,
    Command.INVENTORY: _inventory,
    Command.CONFIG: _config,
    Command.STATUS: _status,
    Command.MONITOR: lambda _state, _: _MONITOR.pack(CURRENT_CMA, VOLTAGE_CV, POWER_CW, 0),
    Command.GET_FIELD_OF_VIEW: lambda state, _: state.values[Command.FIELD_OF_VIEW],
    Command.GET_PTP: lambda state, _: state.values[Command.CLOCK_SOURCE] + state.values[Command.PTP],
    Command.GET_LOCK_OFFSET: lambda state, _: state.values[Command.LOCK_OFFSET],
}
