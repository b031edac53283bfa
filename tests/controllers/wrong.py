"""Bridges that are wrong in one way: the reference bridge, and what spoils it, by name, with the rules that must find it."""

import math
from dataclasses import dataclass, field

import numpy as np
from pymavlink.dialects.v20 import common

from tests.controllers.rules.atmosphere import altitude_m
from tests.controllers.rules.timing import BAROMETER, GYROSCOPE, MAGNETOMETER
from tests.controllers.wire import Writer

WRONGS = {}
_STALL_US, _STALLED_US = 3_000_000, 200_000
FLIGHT_S = 25.0
"""The puppet's whole schedule: what only motion shows needs it."""


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """``spoil`` changes a bridge; ``rules`` are all that it breaks; ``run_s`` is how long that takes; ``link`` are arguments of bridge and controller."""

    rules: frozenset
    spoil: object
    run_s: float = 3.2
    serial: bool = True
    lockstep: bool = False
    controller: dict = field(default_factory=dict)


def wrong(name, *rules, **more):
    def keep(spoil):
        WRONGS[name] = Wrong(rules=frozenset(rules), spoil=spoil, **more)
        return spoil

    return keep


def _sensor(name, *rules, run_s=3.2, **changes):
    """HIL_SENSOR with other figures; each change is a function of all fields."""

    def spoil(bridge):
        bridge.on_sensor = lambda now_us, fields: fields | {key: change(fields) for key, change in changes.items()}

    wrong(name, *rules, run_s=run_s)(spoil)


def _gps(name, *rules, run_s=FLIGHT_S, **changes):
    """The same of HIL_GPS."""

    def spoil(bridge):
        bridge.on_gps = lambda now_us, fields: fields | {key: change(fields) for key, change in changes.items()}

    wrong(name, *rules, run_s=run_s)(spoil)


def _scaled(factor, *keys):
    return {key: (lambda fields, key=key: fields[key] * factor) for key in keys}


def _whole(factor, *keys):
    return {key: (lambda fields, key=key: round(fields[key] * factor)) for key in keys}


_FORCE, _RATES, _FIELD = ("xacc", "yacc", "zacc"), ("xgyro", "ygyro", "zgyro"), ("xmag", "ymag", "zmag")
_MOST_U16 = 65_534

_sensor("pressure in Pa", "pressure", **_scaled(100.0, "abs_pressure"))
_sensor("pressure of another home", "pressure", abs_pressure=lambda f: f["abs_pressure"] + 30.0, pressure_alt=lambda f: altitude_m(f["abs_pressure"] + 30.0))
_sensor("pressure altitude in feet", "pressure_altitude", **_scaled(3.28084, "pressure_alt"))
_sensor("temperature in kelvin", "temperature", temperature=lambda f: f["temperature"] + 273.15)
_sensor("dynamic pressure in Pa", "airspeed", **_scaled(100.0, "diff_pressure"))
_sensor("field in tesla", "field", **_scaled(1e-4, *_FIELD))
_sensor("field in microtesla", "field", **_scaled(100.0, *_FIELD))
_sensor("field in FLU", "field", **_scaled(-1.0, "ymag", "zmag"))
_sensor("force in g", "specific_force", **_scaled(1.0 / 9.80665, *_FORCE))
_sensor("force in FLU", "specific_force", **_scaled(-1.0, "yacc", "zacc"))
_sensor("acceleration for specific force", "specific_force", zacc=lambda f: f["zacc"] + 9.80665)
_sensor("rates in degrees", "gyroscope", run_s=FLIGHT_S, **_scaled(math.degrees(1.0), *_RATES))
_sensor("rates in FLU", "gyroscope", run_s=FLIGHT_S, **_scaled(-1.0, "ygyro", "zgyro"))
_sensor("a bias of 5 degrees a second", "gyroscope_rest", xgyro=lambda f: f["xgyro"] + math.radians(5.0))
_sensor("not a number", "finite", xgyro=lambda _f: math.nan)
_sensor("a second sensor", "device", id=lambda _f: 1)
_sensor("half of the magnetometer's bits", "groups", "rate", fields_updated=lambda f: f["fields_updated"] & ~MAGNETOMETER | 0x40)
_sensor("no bit for the temperature", "groups", "rate", fields_updated=lambda f: f["fields_updated"] & ~0x1000)
_sensor("bits that do not exist", "groups", fields_updated=lambda f: f["fields_updated"] | 1 << 20)
_sensor("no magnetometer", "rate", fields_updated=lambda f: f["fields_updated"] & ~MAGNETOMETER)
_sensor("no barometer", "rate", fields_updated=lambda f: f["fields_updated"] & ~BAROMETER)
_sensor("stamps in nanoseconds", "stamps", time_usec=lambda f: f["time_usec"] * 1000)
_sensor("stamps in milliseconds", "stamps", time_usec=lambda f: f["time_usec"] // 1000)
_sensor("stamps that stand", "stamps", time_usec=lambda _f: 1)

_gps("position in degrees", "gps_position", "pressure", run_s=3.2, lat=lambda f: f["lat"] // 10**7, lon=lambda f: f["lon"] // 10**7, alt=lambda _f: 0)
_gps("position in degrees * 1e6", "gps_velocity", "field", **_whole(0.1, "lat", "lon"))
_gps("altitude in metres", "pressure", "gps_velocity", **_whole(1e-3, "alt"))
_gps("velocity in m/s", "gps_velocity", "specific_force", **_whole(1e-2, "vn", "ve", "vd", "vel"), cog=lambda _f: 65_535)
_gps("velocity in mm/s", "gps_velocity", run_s=11.0, **_whole(10.0, "vn", "ve", "vd", "vel"))
_gps("north for east", "gps_velocity", vn=lambda f: -f["ve"], ve=lambda f: f["vn"], cog=lambda f: f["cog"] if f["cog"] == 65_535 else (f["cog"] + 9000) % 36_000)
_gps("up for down", "gps_velocity", **_whole(-1.0, "vd"))
_gps("speed in mm/s", "gps_speed", vel=lambda f: min(f["vel"] * 10, _MOST_U16))
_gps("course in degrees", "gps_course", cog=lambda f: f["cog"] if f["cog"] == 65_535 else f["cog"] // 100)
_gps("course from -180", "gps_course", cog=lambda f: 65_535 - 18_000 if f["cog"] > 18_000 else f["cog"])
_gps("accuracy in metres", "gps_quality", run_s=17.0, **_whole(1e-2, "eph", "epv"))
_gps("five satellites", "gps_quality", run_s=17.0, satellites_visible=lambda _f: 5)
_gps("no fix", "gps_quality", run_s=17.0, fix_type=lambda _f: 1)
_gps("time since boot", "gps_time", run_s=3.2, time_usec=lambda f: f["time_usec"] - 1_780_000_000_000_000)
_gps("time of sending", "gps_time", run_s=3.2, time_usec=lambda f: f["time_usec"] + 110_000)
_gps("an old fix", "gps_time", run_s=3.2, time_usec=lambda f: f["time_usec"] - 500_000)
_gps("one time for ever", "gps_time", run_s=3.2, time_usec=lambda f: 1_780_000_000_000_000 + 0 * f["time_usec"])


def _frozen(name, keys, *rules, run_s=4.2):
    @wrong(name, *rules, run_s=run_s)
    def spoil(bridge):
        first = {}
        bridge.on_sensor = lambda now_us, fields: fields | {key: first.setdefault(key, fields[key]) for key in keys}


_frozen("a barometer that stands", ("abs_pressure", "pressure_alt"), "stale")
_frozen("a magnetometer that stands", _FIELD, "stale")
_frozen("an accelerometer that stands", _FORCE, "stale")
_frozen("one axis of a gyroscope that stands", ("xgyro",), "stale")


@wrong("a receiver that stands", "stale", "gps_velocity", run_s=FLIGHT_S)
def _(bridge):
    first = {}
    bridge.on_gps = lambda now_us, fields: fields | {key: first.setdefault(key, fields[key]) for key in ("lat", "lon", "alt")}


@wrong("everything in each frame", "rate")
def _(bridge):
    bridge.baro_every = 1


@wrong("a slow IMU", "rate")
def _(bridge):
    bridge.period_us, bridge.baro_every = 20_000, 1


@wrong("a slow receiver", "rate", run_s=4.2)
def _(bridge):
    bridge.gps_period_us = 500_000


@wrong("a fast receiver", "rate")
def _(bridge):
    bridge.gps_period_us = 50_000


@wrong("no receiver", "rate", run_s=12.2)
def _(bridge):
    bridge.gps_period_us = 10**12
    bridge.gps_us = 10**12


@wrong("a gyroscope in every second frame", "imu", "rate")
def _(bridge):
    bridge.on_sensor = lambda now_us, fields: fields | {
        "fields_updated": fields["fields_updated"] if bridge.frames % 2 else fields["fields_updated"] & ~GYROSCOPE
    }


@wrong("a stall of 400 ms", "gap", "rate")
def _(bridge):
    allowed = bridge.may_sense
    bridge.may_sense = lambda now_us: not 1_000_000 <= now_us < 1_400_000 and allowed(now_us)


@wrong("catching up", "burst", run_s=4.2)
def _(bridge):
    held = []
    write = bridge.write

    def late(raw):
        held.append(raw)
        if not _STALL_US <= bridge.body.now_us < _STALL_US + _STALLED_US:
            for one in held:
                write(one)
            held.clear()

    bridge.write = late


@wrong("sensors before the heartbeat", "before_heartbeat", controller={"boot_us": 1_000_000})
def _(bridge):
    bridge.may_sense = lambda now_us: now_us >= bridge.due_us


@wrong("sensors without the HIL flag", "hil_flag", controller={"hil": False})
def _(bridge):
    bridge.serial = False


@wrong("the true state on a serial line", "quaternion", run_s=1.2)
def _(bridge):
    send = bridge.send_sensor

    def both(now_us, fields):
        send(now_us, fields)
        bridge.send(common.MAVLink_hil_state_quaternion_message(now_us, (1.0, 0.0, 0.0, 0.0), *[0] * 14))

    bridge.send_sensor = both


def _heartbeat(name, **changes):
    @wrong(name, "heartbeat", run_s=2.2)
    def spoil(bridge):
        def other():
            beat = {"type": 0, "autopilot": 8, "base_mode": 0, "custom_mode": 0, "system_status": 4, "mavlink_version": 3}
            return common.MAVLink_heartbeat_message(**beat | changes)

        bridge.on_heartbeat = other


_heartbeat("a heartbeat cut short", mavlink_version=0)
_heartbeat("a heartbeat of an autopilot", autopilot=common.MAV_AUTOPILOT_PX4)


@wrong("bytes between frames", "garbage", run_s=1.2)
def _(bridge):
    write = bridge.write
    bridge.write = lambda raw: write(raw + b"\x00\x55")


@wrong("three carriage returns", "garbage", "shell", run_s=1.2)
def _(bridge):
    write = bridge.write
    bridge.write = lambda raw: write(raw + b"\r\r\r")


@wrong("a wrong checksum", "checksum", "garbage", "sequence", run_s=1.2)
def _(bridge):
    write = bridge.write
    bridge.write = lambda raw: write(raw[:-1] + bytes([raw[-1] ^ 1]) if bridge.frames == 50 else raw)


@wrong("frames without numbers", "sequence", run_s=1.2)
def _(bridge):
    send = bridge.send

    def again(message):
        bridge.writer.mav.seq = 7
        send(message)

    bridge.send = again


@wrong("no answer to TIMESYNC", "timesync")
def _(bridge):
    bridge.on_timesync = lambda now_us, message: None


@wrong("another's TIMESYNC", "timesync")
def _(bridge):
    bridge.on_timesync = lambda now_us, message: common.MAVLink_timesync_message(now_us * 1000 + 1, message.ts1 + 1)


@wrong("no waiting in lockstep", "lockstep", serial=False, lockstep=True, run_s=1.2)
def _(bridge):
    bridge.may_sense = lambda now_us: bridge.heard_us is not None and now_us >= bridge.due_us
    send = bridge.send_sensor

    def twice(now_us, fields):
        send(now_us, fields)
        send(now_us, fields | {"time_usec": fields["time_usec"] + 1})

    bridge.send_sensor = twice


def ground_frames(count=6):
    """What a ground station sends: known, unknown, signed; some cut of their zeros."""
    writer = Writer(255, 190)
    frames = []
    for number in range(count):
        command = common.MAVLink_command_long_message(1, 1, 512, 0, float(number), 0, 0, 0, 0, 0, 0)
        frames += [
            writer.pack(command),
            writer.unknown(70_000 + number, bytes(range(number + 1)) + b"\xfd\x09"),
            writer.signed(common.MAVLink_heartbeat_message(6, 8, 0, 0, 4, 3), stamp=number),
        ]
    return frames


def _forwarding(name, change, *more):
    @wrong(name, "forwarded", *more, run_s=1.2)
    def spoil(bridge):
        forward = bridge.from_ground
        seen = []

        def other(raw):
            seen.append(raw)
            for one in change(seen):
                forward(one)

        bridge.from_ground = other


_forwarding("a signature cut off", lambda seen: [seen[-1] if not seen[-1][2] & 1 else bytes([seen[-1][0], seen[-1][1], 0]) + seen[-1][3:-13]], "checksum", "garbage")
_forwarding("unknown frames dropped", lambda seen: [] if seen[-1][9] else [seen[-1]])
_forwarding("zeros filled up", lambda seen: [_filled(seen[-1])])
_forwarding("frames out of order", lambda seen: [seen[-1], seen[-2]] if len(seen) % 2 == 0 else [])
_forwarding("frames twice", lambda seen: [seen[-1], seen[-1]])


def _filled(raw):
    """A COMMAND_LONG with its zeros put back, its checksum made anew; others as they are."""
    if raw[2] & 1 or raw[9]:
        return raw
    writer = Writer(255, 190)
    writer.mav.seq = raw[4]
    payload = raw[10:-2].ljust(33, b"\0")
    return writer._frame(76, payload, common.mavlink_map[76].crc_extra, flags=0)


def finite_fields(fields):
    """Whether HIL_SENSOR's fields are all numbers."""
    return bool(np.isfinite([float(value) for value in fields.values()]).all())
