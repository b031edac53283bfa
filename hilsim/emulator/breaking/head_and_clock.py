"""Faults of a lidar's head, of its clock, and of what comes to its GPS input; those of its optics are ``breaking.optics``."""

import math

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import borrowing_kernel, constant, kernel
from hilsim.emulator.plan import Gps, LidarPlan, Rare
from hilsim.emulator.position import write_sentence
from hilsim.faults.catalogue import Effect
from hilsim.faults.table import FaultTable, passed_ns, strength
from hilsim.rng import Purpose, normal, uniform_pair
from hilsim.sensor.clock import rig_from_device
from hilsim.sensor.specs import PpsState
from hilsim.units import HOUR_US, NS_PER_S
from hilsim.world.platforms.platform import Platform

_TURN, _STAMP, _PULSE, _SENTENCE = constant(Effect.TURN), constant(Effect.STAMP), constant(Effect.PULSE), constant(Effect.SENTENCE)
_THERMAL, _MASTER = constant(Effect.THERMAL), constant(Effect.MASTER)
_SYNCHRONIZING, _LOCKED = constant(PpsState.SYNCHRONIZING), constant(PpsState.LOCKED)
_EDGE, _CHARACTER = constant(Purpose.FAULT_EDGE), constant(Purpose.FAULT_CHARACTER)
_FIRST_PRINTABLE, _PRINTABLES = 0x20, 95


@kernel
def _slipped_turns(faults: FaultTable, turns_per_ns: float, rig_ns: int) -> float:
    turns = 0.0
    for row in range(faults.effect.size):
        if faults.effect[row] == _TURN:
            passed = passed_ns(faults, row, rig_ns)
            turns += faults.value[row, 0] * turns_per_ns * passed
            turns += (faults.value[row, 1] * strength(faults, row, rig_ns) + faults.value[row, 2] * 1e-9 * passed) / 360.0
    return turns


@borrowing_kernel
def slipped_turns(rare: Rare | None, plan: LidarPlan, device_ns: int) -> float:
    """Turns by which faults have moved the head at a device time; ``rare`` is the plan's."""
    if rare is None or not rare.faults.turns:
        return 0.0
    return _slipped_turns(rare.faults, plan.head.rate_crpm / 6e12, rig_from_device(plan.clock, device_ns))


@kernel
def _error_ns(faults: FaultTable, rig_ns: int, utc_ns: int) -> float:
    error_ns, second = 0.0, utc_ns // NS_PER_S
    for row in range(faults.effect.size):
        if faults.effect[row] == _PULSE or faults.effect[row] == _MASTER:
            error_ns += faults.value[row, 1] * 1e-6 * passed_ns(faults, row, rig_ns)
        if faults.effect[row] != _STAMP:
            continue
        acts = strength(faults, row, rig_ns)
        down_ns = 1e6 * faults.value[row, 5]
        error_ns += faults.value[row, 0] * 1e9 * acts + faults.value[row, 1] * 1e-6 * max(passed_ns(faults, row, rig_ns) - down_ns, 0.0)
        if acts > 0.0 and faults.value[row, 2] > 0.0:
            error_ns += acts * faults.value[row, 2] * 1e9 * normal(faults.seed[row], 0, second, _EDGE)
        if acts > 0.0 and faults.value[row, 3] > 0.0:
            occurs, place = uniform_pair(faults.seed[row], 1, second, _EDGE)
            if occurs < acts * faults.value[row, 3] and utc_ns - second * NS_PER_S >= place * NS_PER_S:
                error_ns -= place * NS_PER_S
    return error_ns


@kernel
def _powered_up_ns(faults: FaultTable, rig_ns: int) -> int:
    """Rig time at which the sensor got its power again, the last time before ``rig_ns``; -1 where none has failed."""
    powered_ns = -1
    for row in range(faults.effect.size):
        if faults.effect[row] == _STAMP and faults.value[row, 5] > 0.0 and strength(faults, row, rig_ns) > 0.0:
            powered_ns = max(powered_ns, faults.begin_ns[row] + math.floor(1e6 * faults.value[row, 5]))
    return min(powered_ns, rig_ns)


@borrowing_kernel
def falsified_ns(rare: Rare | None, plan: LidarPlan, stamp_ns: int, device_ns: int) -> int:
    """A stamp in nanoseconds as faults falsify it; ``rare`` is the plan's."""
    if rare is None or not rare.faults.tells:
        return stamp_ns
    rig_ns = rig_from_device(plan.clock, device_ns)
    powered_ns = _powered_up_ns(rare.faults, rig_ns)
    counted_ns = stamp_ns if powered_ns < 0 else rig_ns - powered_ns
    return counted_ns + math.floor(_error_ns(rare.faults, rig_ns, plan.clock.utc_epoch_ns + rig_ns) + 0.5)


@borrowing_kernel
def falsified_us(rare: Rare | None, plan: LidarPlan, stamp_us: int, device_ns: int) -> int:
    """A stamp in microseconds past the hour as faults falsify it; ``rare`` is the plan's."""
    if rare is None or not rare.faults.tells:
        return stamp_us
    faults, rig_ns = rare.faults, rig_from_device(plan.clock, device_ns)
    shown_us = (falsified_ns(rare, plan, stamp_us * 1000, device_ns) // 1000) % HOUR_US
    for row in range(faults.effect.size):
        if faults.effect[row] == _STAMP and faults.value[row, 4] > 0.0 and strength(faults, row, rig_ns) > 0.0:
            since_us = (rig_ns - faults.begin_ns[row]) // 1000
            shown_us += (since_us - shown_us + HOUR_US - 1) // HOUR_US * HOUR_US if since_us > shown_us else 0
    return shown_us


@borrowing_kernel
def pulse_state(rare: Rare | None, plan: LidarPlan, rig_ns: int) -> int:
    """State of the pulse in a position packet at a rig time; ``rare`` is the plan's."""
    state = plan.gps.pps_state
    if rare is not None and rare.faults.tells:
        for row in range(rare.faults.effect.size):
            if rare.faults.effect[row] == _PULSE and strength(rare.faults, row, rig_ns) > 0.0:
                state = int(rare.faults.value[row, 0])
        if state == _LOCKED and _powered_up_ns(rare.faults, rig_ns) >= 0:
            state = _SYNCHRONIZING
    return state


@borrowing_kernel
def thermal_status(rare: Rare | None, rig_ns: int) -> tuple[int, int]:
    """Thermal status and temperature at shutdown in a position packet at a rig time; ``rare`` is the plan's."""
    status, temperature_c = 0, 0
    if rare is not None and rare.faults.tells:
        for row in range(rare.faults.effect.size):
            if rare.faults.effect[row] == _THERMAL and strength(rare.faults, row, rig_ns) > 0.0:
                status, temperature_c = int(rare.faults.value[row, 0]), int(rare.faults.value[row, 1])
    return status, temperature_c


@kernel
def _falsified_sentence(faults: FaultTable, plan: LidarPlan, platform: Platform, rig_ns: int, sentence: npt.NDArray[np.uint8]) -> int:
    gps, is_valid, delay_ns, seconds = plan.gps, plan.gps.valid, plan.gps.sentence_delay_ns, 0
    for row in range(faults.effect.size):
        if faults.effect[row] == _SENTENCE and strength(faults, row, rig_ns) > 0.0:
            if faults.value[row, 0] > 0.0:
                return 0
            is_valid = is_valid and faults.value[row, 1] <= 0.0
            delay_ns += int(faults.value[row, 2] * 1e9)
            seconds += int(faults.value[row, 3])
    place = (gps.latitude_deg, gps.longitude_deg, gps.origin_east_m, gps.origin_north_m)
    falsified = Gps(gps.pps_state, gps.heard, gps.present, is_valid, place[0], place[1], place[2], place[3], delay_ns)
    size = write_sentence(plan.clock, falsified, platform, rig_ns, sentence, seconds)
    for row in range(faults.effect.size):
        share = faults.value[row, 4] * strength(faults, row, rig_ns) if faults.effect[row] == _SENTENCE else 0.0
        for at in range(size if share > 0.0 else 0):
            occurs, what = uniform_pair(faults.seed[row], at, (plan.clock.utc_epoch_ns + rig_ns) // NS_PER_S, _CHARACTER)
            if occurs < share:
                sentence[at] = _FIRST_PRINTABLE + int(what * _PRINTABLES)
    return size


@borrowing_kernel
def write_received(rare: Rare | None, plan: LidarPlan, platform: Platform, rig_ns: int, sentence: npt.NDArray[np.uint8]) -> int:
    """``position.write_sentence`` of what the sensor receives; ``rare`` is the plan's."""
    if rare is None or not rare.faults.tells:
        return write_sentence(plan.clock, plan.gps, platform, rig_ns, sentence, 0)
    return _falsified_sentence(rare.faults, plan, platform, rig_ns, sentence)
