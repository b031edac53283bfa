"""The rotating head: its true angle at any device time, and the reading of its encoder.

The angle is a pure function of device time: a uniform rotation, an oscillation once per turn and a slow oscillation (real units hold ±0.1-0.2 % within 30 ms).
After a change of its setting a head settles: a cubic of time leads from its angle and speed to the new rotation, so that a motor ramps, and neither leaps.
A head whose phase is locked turns by true time, and passes its angle at each pulse.
A packet reports a reading: noise, the encoder's grid, hundredths of a degree. That reproduces the distribution of azimuth increments of real units
(38..42 at 600 rpm) and their lag-1 autocorrelation of -0.48, which noise on the *speed* would not.
"""

import math
from typing import NamedTuple

import numpy as np

from hilsim.compilation.jit import borrowing_kernel
from hilsim.rng import Purpose, uniform
from hilsim.sensor.clock import DeviceClock, scaled_down, scaled_up
from hilsim.sensor.setup import DEFAULT_RATE_RPM, SensorSetup
from hilsim.sensor.unit.encoder import Encoder, RateJitterSpec, encoder_code, encoder_error_cdeg
from hilsim.units import NS_PER_S, TURN_CDEG

_PERIOD_NS = 6_000_000_000_000
"""100 minutes: a whole number of turns at any rate in steps of 0.01 rpm."""
_MINUTE_NS = 60_000_000_000
_RAMP_RPM_PER_S = 200.0
"""Change of the rotation rate within a second; chosen, no source gives it."""
_LOCKING_NS = 10_000_000_000
"""Time in which a head that locks finds its angle; chosen (users report some ms of error at first, and 0.1 ms after a minute)."""
_LOCKED_SWING_TURNS = 0.38 * math.sqrt(2.0) / 360.0
"""Amplitude of the slow oscillation that a locked head does not exceed: a standard deviation of 0.38 degrees at pulses, measured by a user at 600 rpm."""
_CONTINUATION_STEPS = 60
_PASSAGE_STEPS = 3
"""Each divides the error by the relative swing of the rate, hundreds of times."""


class Head(NamedTuple):
    """Kernel-side head.

    Attributes:
        rate_crpm: Mean rotation rate in 0.01 rpm, an integer (so that 100 minutes are whole turns and long runs lose no precision).
        phase_turns: Angle at device time 0, in turns.
        per_turn_ratio: ``RateJitterSpec.per_turn_ratio``.
        per_turn_phase_rad: Phase of the oscillation once per turn.
        drift_ratio: ``RateJitterSpec.drift_ratio``.
        drift_period_ns: Period of the slow oscillation.
        drift_phase_rad: Phase of the slow oscillation at device time 0.
        is_locked: Whether its phase is locked to the pulse.
        clock_ppb: Gain of device time over the time it turns by: 0, or the oscillator's where the phase is locked.
        settle_from_ns: Device time from which it settles.
        settle_ns: Duration of settling.
        settle_turns: Angle at the beginning of settling beyond that of the uniform rotation.
        settle_rate_turns: Speed at the beginning of settling beyond that of the uniform rotation, in turns per ``settle_ns``.
    """

    rate_crpm: int
    phase_turns: float
    per_turn_ratio: float
    per_turn_phase_rad: float
    drift_ratio: float
    drift_period_ns: int
    drift_phase_rad: float
    is_locked: bool = False
    clock_ppb: int = 0
    settle_from_ns: int = 0
    settle_ns: int = 1
    settle_turns: float = 0.0
    settle_rate_turns: float = 0.0


def mean_rate_rpm(setup: SensorSetup) -> int:
    """Mean rotation rate that a head is set to, in rpm."""
    return DEFAULT_RATE_RPM if setup.rotation_rate_rpm is None else setup.rotation_rate_rpm


def locked_to_pulse(head: Head, clock: DeviceClock, *, rate_rpm: int, lock_deg: float) -> Head:
    """The head with its phase locked: it passes ``lock_deg`` at each pulse that the clock follows."""
    since_pulse_ns = (clock.utc_epoch_ns + clock.start_ns) % NS_PER_S
    phase_turns = (lock_deg / 360.0 + since_pulse_ns * 100 * rate_rpm % _PERIOD_NS / _PERIOD_NS) % 1.0
    head = head._replace(rate_crpm=100 * rate_rpm, phase_turns=phase_turns, is_locked=True, clock_ppb=clock.oscillator_ppb)
    turns_per_period = head.rate_crpm / _PERIOD_NS * head.drift_period_ns
    held = 2.0 * np.pi * _LOCKED_SWING_TURNS / turns_per_period
    return head._replace(drift_ratio=min(head.drift_ratio, held))


def build_head(*, rate_rpm: float, phase_deg: float, rate_jitter: RateJitterSpec, seed: int, stream: int) -> Head:
    """Build a kernel-side head; the phases of its oscillations are drawn from the rig's seed (every unit has its own)."""
    per_turn, drift = (2 * np.pi * uniform(np.uint64(seed), stream, index, int(Purpose.HEAD_RATE_JITTER)) for index in (0, 1))
    return Head(
        rate_crpm=round(100 * rate_rpm),
        phase_turns=phase_deg / 360.0 % 1.0,
        per_turn_ratio=rate_jitter.per_turn_ratio,
        per_turn_phase_rad=float(per_turn),
        drift_ratio=rate_jitter.drift_ratio,
        drift_period_ns=round(rate_jitter.drift_period_s * 1e9),
        drift_phase_rad=float(drift),
    )


def turning_head(rate_hz: int, phase_turns: float = 0.0, clock_ppb: int = 0) -> Head:
    """A head that turns evenly.

    Args:
        rate_hz: Turns a second.
        phase_turns: Angle at device time 0, in turns clockwise from ahead.
        clock_ppb: As ``Head.clock_ppb``.
    """
    return no_head()._replace(rate_crpm=6000 * rate_hz, phase_turns=phase_turns, clock_ppb=clock_ppb)


def no_head() -> Head:
    """Placeholder head of a sensor without one."""
    return Head(0, 0.0, 0.0, 0.0, 0.0, 1_000_000_000, 0.0)


@borrowing_kernel
def _settled_ratio(head: Head, device_ns: int) -> float:
    """Share of settling that has passed, 0 to 1."""
    return min(max((device_ns - head.settle_from_ns) / head.settle_ns, 0.0), 1.0)


@borrowing_kernel
def _settling_turns(head: Head, device_ns: int) -> float:
    """Angle beyond that of the uniform rotation: a cubic with the angle and speed of the beginning, and neither at the end."""
    u = _settled_ratio(head, device_ns)
    return float((1.0 - u) * (1.0 - u) * ((1.0 + 2.0 * u) * head.settle_turns + u * head.settle_rate_turns))


@borrowing_kernel
def _settling_speed(head: Head, device_ns: int) -> float:
    """Speed beyond that of the uniform rotation, in turns per nanosecond."""
    u = _settled_ratio(head, device_ns)
    return float((1.0 - u) * ((1.0 - 3.0 * u) * head.settle_rate_turns - 6.0 * u * head.settle_turns) / head.settle_ns)


@borrowing_kernel
def turned(head: Head, device_ns: int) -> float:
    """Turns since device time 0, from the angle 0 before it on, without the oscillations."""
    return head.phase_turns + scaled_down(device_ns, head.clock_ppb) / turn_ns(head) + _settling_turns(head, device_ns)


@borrowing_kernel
def head_turns(head: Head, device_ns: int) -> float:
    """True angle in turns at a device time, in [0, 1) plus or minus the oscillations; accurate to 1e-12 turns for any length of run."""
    of_period = scaled_down(device_ns, head.clock_ppb) % _PERIOD_NS
    uniform_turns = head.phase_turns + (of_period * head.rate_crpm % _PERIOD_NS) / _PERIOD_NS + _settling_turns(head, device_ns)
    # A speed oscillation of relative amplitude a at angular frequency w is an angle oscillation of a * rate / w.
    per_turn = head.per_turn_ratio / (2.0 * np.pi) * np.sin(2.0 * np.pi * uniform_turns + head.per_turn_phase_rad)
    turns_per_period = head.rate_crpm / _PERIOD_NS * head.drift_period_ns
    drift_angle = 2.0 * np.pi * (device_ns % head.drift_period_ns) / head.drift_period_ns + head.drift_phase_rad
    drift = head.drift_ratio * turns_per_period / (2.0 * np.pi) * np.sin(drift_angle)
    return float(uniform_turns + per_turn + drift)


@borrowing_kernel
def turn_ns(head: Head) -> float:
    """Mean duration of a turn in device time."""
    return _PERIOD_NS / head.rate_crpm


@borrowing_kernel
def passage_ns(head: Head, turns: float) -> int:
    """Device time, to some nanoseconds, at which the head has turned this far, counted from angle 0 before device time 0."""
    mean_ns = turn_ns(head)
    device_ns = scaled_up(int((turns - head.phase_turns) * mean_ns), head.clock_ppb)
    settled_ns = head.settle_from_ns + head.settle_ns
    if min(device_ns, device_ns - int(head.settle_turns * mean_ns)) < settled_ns:
        device_ns = _settling_passage_ns(head, turns, settled_ns)
    for _ in range(_PASSAGE_STEPS):
        ahead = turns - head_turns(head, device_ns)
        device_ns += int((ahead - math.floor(ahead + 0.5)) * mean_ns / (1.0 + mean_ns * _settling_speed(head, device_ns)))
    return device_ns


@borrowing_kernel
def _settling_passage_ns(head: Head, turns: float, settled_ns: int) -> int:
    """``passage_ns`` without the oscillations, of a head that settles until ``settled_ns``: by halving the time in which it can be."""
    mean_ns = turn_ns(head)
    if turns >= turned(head, settled_ns):
        return scaled_up(int((turns - head.phase_turns) * mean_ns), head.clock_ppb)
    if turns <= turned(head, head.settle_from_ns):
        return scaled_up(int((turns - head.settle_turns - head.phase_turns) * mean_ns), head.clock_ppb)
    low, high = head.settle_from_ns, settled_ns
    while high - low > 1:
        middle = low + (high - low) // 2
        if turned(head, middle) <= turns:
            low = middle
        else:
            high = middle
    return low


@borrowing_kernel
def head_reading_cdeg(head: Head, encoder: Encoder, device_ns: int, sequence: int, slipped: float = 0.0) -> int:
    """Encoder reading at a firing sequence's first firing: hundredths of a degree, 0..35999.

    Args:
        head: The head.
        encoder: Its encoder.
        device_ns: Device time of the firing.
        sequence: Index of the firing sequence, which numbers the reading's random number.
        slipped: Turns by which something else has moved the head.
    """
    angle = (head_turns(head, device_ns) + slipped) * TURN_CDEG
    angle += encoder_error_cdeg(encoder, angle, sequence)
    return encoder_code(encoder, angle, sequence)


def continued_head(former: Head, head: Head, device_ns: int) -> Head:
    """A head that is, at a device time, where the former one is and as fast, and settles to its own rotation.

    Args:
        former: The head before.
        head: The head as its setting makes it.
        device_ns: Device time of the change.
    """
    if turns_alike(former, head):
        return former
    ahead = _speed(former, device_ns) - _speed(head, device_ns)
    settle_ns = max(int(abs(ahead) * _MINUTE_NS / _RAMP_RPM_PER_S * NS_PER_S), _LOCKING_NS if head.is_locked else 1)
    middle_turns = -ahead * settle_ns / 2.0  # a speed that falls evenly ends on the uniform rotation
    head = head._replace(settle_from_ns=device_ns, settle_ns=settle_ns, settle_turns=middle_turns, settle_rate_turns=ahead * settle_ns)
    wanted = float(head_turns(former, device_ns))
    for _ in range(_CONTINUATION_STEPS):  # the swings of a head are small: each step divides the error by a hundred and more
        error = (wanted - float(head_turns(head, device_ns)) + 0.5) % 1.0 - 0.5
        if head.is_locked:
            head = head._replace(settle_turns=head.settle_turns + error)
        else:
            head = head._replace(phase_turns=(head.phase_turns + error) % 1.0)
        if abs(error) < 1e-14:
            break
    return head


def _settled(head: Head) -> Head:
    """The rotation of a head, wherever it is; a locked head's phase is part of it."""
    phase_turns = head.phase_turns if head.is_locked else 0.0
    return head._replace(phase_turns=phase_turns, settle_from_ns=0, settle_ns=1, settle_turns=0.0, settle_rate_turns=0.0)


def turns_alike(former: Head, head: Head) -> bool:
    """Whether both heads rotate alike, or will when they have settled."""
    return _settled(former) == _settled(head)


def _speed(head: Head, device_ns: int) -> float:
    """Speed without the oscillations, in turns per nanosecond."""
    return head.rate_crpm / _PERIOD_NS + float(_settling_speed(head, device_ns))
