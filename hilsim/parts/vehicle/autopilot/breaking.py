"""Faults of a vehicle's sensors and motors: what they make of a reading, of a fix and of motor commands, as functions of rig time and seed.

A reading is changed after it was made, so that one without an acting fault has the bytes of the rig without any.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.faults.catalogue import Effect, Place, Unit
from hilsim.faults.specs import FaultSpec
from hilsim.faults.table import FaultTable, build_fault_table, passed_ns, strength
from hilsim.parts.vehicle.physics.gps import MAX_CM, MAX_CMPS, NO_FIX, UNKNOWN_COURSE, course_cdeg
from hilsim.parts.vehicle.physics.hold import command_for
from hilsim.parts.vehicle.physics.multirotor import Multirotor, target_speed
from hilsim.parts.vehicle.physics.noise import white
from hilsim.parts.vehicle.physics.pressure import pressure_altitude_m
from hilsim.rng import Purpose, uniform
from hilsim.world.geometry.geodesy import Home, geodetic

VEHICLE = "vehicle"
"""Name of the vehicle, which ``on`` of a fault matches."""
FIRST_READING, END_OF_READINGS = 8, 60
"""Bytes of ``HIL_SENSOR`` that are its thirteen readings."""
_MOTORS = 16
_BIAS, _NOISE, _CLIP = constant(Effect.BIAS), constant(Effect.NOISE), constant(Effect.CLIP)
_FREEZE, _SILENCE = constant(Effect.FREEZE), constant(Effect.SILENCE)
_SHIFT, _DRIFT, _JAM, _THRUST = constant(Effect.SHIFT), constant(Effect.DRIFT), constant(Effect.JAM), constant(Effect.THRUST)
_COMPASS, _BAROMETER, _GPS = constant(Unit.COMPASS), constant(Unit.BAROMETER), constant(Unit.GPS)
_READING, _FIX = constant(Purpose.FAULT_READING), constant(Purpose.FAULT_FIX)
_PRESSURE, _ALTITUDE, _TEMPERATURE = constant(9), constant(11), constant(12)
_HPA_PER_PA = 0.01
_LEAST_LOST_S, _MOST_LOST_S = 1.0, 6.0
_SATELLITES_HZ, _POSITION_HZ, _VELOCITY_HZ = 3.0, 1.1, 0.8  # ArduPilot's SIM_GPS.cpp
_FEWEST_SATELLITES = constant(2)


def vehicle_faults(faults: Sequence[FaultSpec]) -> tuple[FaultSpec, ...]:
    """Those of a rig's faults that befall its vehicle."""
    return tuple(fault for fault in faults if fault.row.place in (Place.VEHICLE, Place.MOTOR) and fault.befalls(VEHICLE))


def vehicle_fault_table(faults: Sequence[FaultSpec], seed: int) -> FaultTable:
    """Faults of a vehicle for kernels."""
    return build_fault_table(faults, _MOTORS, seed)


@kernel
def _field(unit: int, axis: int) -> int:
    """Place of an axis of a unit in ``HIL_SENSOR``, from the first acceleration."""
    return _PRESSURE if unit == _BAROMETER else 3 * unit + axis


@kernel
def break_readings(faults: FaultTable, rig_ns: int, before: npt.NDArray[np.float32], reading: npt.NDArray[np.float32]) -> int:
    """Change readings as faults do; returns the bits of ``fields_updated`` of those that are withheld.

    Args:
        faults: Faults of the vehicle.
        rig_ns: Rig time at which the frame was due.
        before: ``float32[13]``, readings of the frame before.
        reading: ``float32[13]``, the fields of ``HIL_SENSOR`` from ``xacc`` on, overwritten.
    """
    withheld = 0
    for row in range(faults.effect.size):
        effect, acts, unit = faults.effect[row], strength(faults, row, rig_ns), int(faults.value[row, 0])
        if effect < _BIAS or effect > _SILENCE or unit > _BAROMETER or acts <= 0.0:
            continue
        axes, scale = (1, _HPA_PER_PA) if unit == _BAROMETER else (3, 1.0)
        noise = white(np.uint64(faults.seed[row]), unit, rig_ns, _READING)
        for axis in range(axes):
            at = _field(unit, axis)
            if effect == _BIAS:
                reading[at] += acts * scale * faults.value[row, 1 + axis]
            elif effect == _NOISE:
                reading[at] += acts * scale * faults.value[row, 1] * noise[axis]
            elif effect == _CLIP:
                reading[at] = min(max(reading[at], -faults.value[row, 1]), faults.value[row, 1])
            else:
                reading[at] = before[at]
            if effect == _SILENCE:
                withheld |= 1 << at
        if unit == _BAROMETER:
            reading[_ALTITUDE] = before[_ALTITUDE] if effect >= _FREEZE else pressure_altitude_m(float(reading[_PRESSURE]) / _HPA_PER_PA)
            if effect == _SILENCE:
                withheld |= 1 << _ALTITUDE | 1 << _TEMPERATURE
    return withheld


@kernel
def gps_silence(faults: FaultTable, rig_ns: int) -> int:
    """Whether a receiver's fix is withheld (``Effect.SILENCE``), or the last one repeated (``Effect.FREEZE``); 0: neither."""
    found = 0
    for row in range(faults.effect.size):
        effect = faults.effect[row]
        if effect in {_FREEZE, _SILENCE} and faults.value[row, 0] == _GPS and strength(faults, row, rig_ns) > 0.0:
            found = max(found, effect)
    return int(found)


@kernel
def _within(value: float, limit: int) -> int:
    return int(min(max(math.floor(value + 0.5), -limit), limit))


@kernel
def _move(home: Home, record: npt.NDArray[Any], way: tuple[float, float, float], velocity: tuple[float, float, float]) -> None:
    """Add a way (m) and a velocity (m/s), both east, north, up, to a fix."""
    message = record[0]
    latitude, longitude = geodetic(home.latitude_deg, home.longitude_deg, way[0], way[1])
    message.lat = int(message.lat) + math.floor((latitude - home.latitude_deg) * 1e7 + 0.5)
    message.lon = int(message.lon) + math.floor(((longitude - home.longitude_deg + 180.0) % 360.0 - 180.0) * 1e7 + 0.5)
    message.alt = int(message.alt) + math.floor(1000.0 * way[2] + 0.5)
    if velocity[0] == 0.0 and velocity[1] == 0.0 and velocity[2] == 0.0:
        return
    north, east = 0.01 * message.vn + velocity[1], 0.01 * message.ve + velocity[0]
    speed = math.sqrt(east * east + north * north)
    message.vn, message.ve = _within(100.0 * north, MAX_CMPS), _within(100.0 * east, MAX_CMPS)
    message.vd = _within(float(message.vd) - 100.0 * velocity[2], MAX_CMPS)
    message.vel, message.cog = _within(100.0 * speed, MAX_CM), course_cdeg(east, north, speed)


@kernel
def _lose(record: npt.NDArray[Any]) -> None:
    """Make of a fix the message of a receiver without one."""
    message = record[0]
    message.lat = message.lon = message.alt = 0
    message.eph = message.epv = MAX_CM
    message.vel = message.vn = message.ve = message.vd = 0
    message.cog, message.fix_type, message.satellites_visible = UNKNOWN_COURSE, NO_FIX, 0


@kernel
def _stair(seed: int, number: int, since_s: float, rate_hz: float) -> float:
    """A random number, -1 to 1, that changes at a rate."""
    return 2.0 * uniform(np.uint64(seed), number, math.floor(since_s * rate_hz), _FIX) - 1.0


@kernel
def _jam(faults: FaultTable, row: int, home: Home, since_s: float, record: npt.NDArray[Any]) -> None:
    """Lose a fix for a while, then scatter it."""
    seed, value, message = faults.seed[row], faults.value[row], record[0]
    if since_s < _LEAST_LOST_S + (_MOST_LOST_S - _LEAST_LOST_S) * uniform(np.uint64(seed), 0, 0, _FIX):
        _lose(record)
        return
    error_m = value[2] + (value[3] - value[2]) * abs(_stair(seed, 1, since_s, _SATELLITES_HZ))
    message.eph = message.epv = _within(100.0 * error_m, MAX_CM)
    message.satellites_visible = _FEWEST_SATELLITES + int((value[4] - 1.0) * abs(_stair(seed, 2, since_s, _SATELLITES_HZ)))
    way = (
        value[0] * _stair(seed, 3, since_s, _POSITION_HZ),
        value[0] * _stair(seed, 4, since_s, _POSITION_HZ),
        value[0] * _stair(seed, 5, since_s, _POSITION_HZ),
    )
    velocity = (
        value[1] * _stair(seed, 6, since_s, _VELOCITY_HZ),
        value[1] * _stair(seed, 7, since_s, _VELOCITY_HZ),
        value[1] * _stair(seed, 8, since_s, 0.5 * _VELOCITY_HZ),
    )
    _move(home, record, way, velocity)


@kernel
def break_fix(faults: FaultTable, home: Home, rig_ns: int, record: npt.NDArray[Any]) -> None:
    """Change a fix, ``HIL_GPS_DTYPE[1]``, as faults do when it is sent."""
    for row in range(faults.effect.size):
        effect, acts, value = faults.effect[row], strength(faults, row, rig_ns), faults.value[row]
        if acts <= 0.0 or record[0].fix_type == NO_FIX or effect not in {_SHIFT, _DRIFT, _JAM}:
            continue
        if effect == _JAM:
            _jam(faults, row, home, 1e-9 * (rig_ns - faults.begin_ns[row]), record)
            continue
        east, north = math.sin(math.radians(value[1])), math.cos(math.radians(value[1]))
        if effect == _SHIFT:
            _move(home, record, (acts * value[0] * east, acts * value[0] * north, acts * value[2]), (0.0, 0.0, 0.0))
            continue
        passed_s, settling_s = 1e-9 * passed_ns(faults, row, rig_ns), value[3]
        left = math.exp(-passed_s / settling_s) if settling_s > 0.0 else 0.0
        way, speed = passed_s - settling_s * (1.0 - left), acts * (1.0 - left)
        _move(
            home,
            record,
            (way * value[0] * east, way * value[0] * north, way * value[2]),
            (speed * value[0] * east, speed * value[0] * north, speed * value[2]),
        )


@kernel
def weakened(faults: FaultTable, multirotor: Multirotor, command: npt.NDArray[np.float64], rig_ns: int) -> npt.NDArray[np.float64]:
    """Commands ``float64[n]`` with which sound motors give the thrust of these motors with theirs; below idle they stop."""
    weak = command.copy()
    for row in range(faults.effect.size):
        acts = strength(faults, row, rig_ns)
        if faults.effect[row] != _THRUST or acts <= 0.0:
            continue
        share = 1.0 - acts * (1.0 - faults.value[row, 0])
        for motor in range(min(command.size, faults.channel.shape[1])):
            if faults.channel[row, motor]:
                speed = target_speed(multirotor, weak[motor])
                weak[motor] = command_for(multirotor, share * multirotor.airframe.thrust_n_per_radps2 * speed * speed)
    return weak
