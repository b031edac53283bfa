"""The rotating head: its true angle at any device time, and the reading of its encoder.

The angle is a pure function of device time: a uniform rotation, an oscillation once per turn and a slow oscillation (real units hold ±0.1-0.2 % within 30 ms).
A packet reports a reading: white noise, the encoder's grid, hundredths of a degree. That reproduces the distribution of azimuth increments of real units
(38..42 at 600 rpm) and their lag-1 autocorrelation of -0.48, which noise on the *speed* would not.
"""

import math
from typing import NamedTuple

import numpy as np

from hilsim.compilation.jit import constant, kernel
from hilsim.rng import Purpose, normal, uniform
from hilsim.sensor.setup import DEFAULT_RATE_RPM, SensorSetup
from hilsim.sensor.velodyne_specs import EncoderSpec, RateJitterSpec, VelodyneSpec
from hilsim.units import TURN_CDEG

_PERIOD_NS = 6_000_000_000_000
"""100 minutes: a whole number of turns at any rate in steps of 0.01 rpm."""
_PASSAGE_STEPS = 3
"""Each divides the error by the relative swing of the rate, hundreds of times."""
_ENCODER_NOISE = constant(Purpose.ENCODER_NOISE)


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
        tick_cdeg: ``EncoderSpec.tick_cdeg``.
        noise_cdeg: ``EncoderSpec.noise_cdeg``.
        seed: Random seed of the rig.
        stream: The sensor's number.
    """

    rate_crpm: int
    phase_turns: float
    per_turn_ratio: float
    per_turn_phase_rad: float
    drift_ratio: float
    drift_period_ns: int
    drift_phase_rad: float
    tick_cdeg: float
    noise_cdeg: float
    seed: np.uint64
    stream: int


def mean_rate_rpm(setup: SensorSetup) -> int:
    """Mean rotation rate that a head is set to, in rpm."""
    return DEFAULT_RATE_RPM if setup.rotation_rate_rpm is None else setup.rotation_rate_rpm


def rate_rule(spec: VelodyneSpec, setup: SensorSetup) -> tuple[bool, str]:
    """Check that a model supports the configured rotation rate; returns the condition and its error message for ``require``."""
    rate_rpm = mean_rate_rpm(setup)
    return (
        spec.rate_min_rpm <= rate_rpm <= spec.rate_max_rpm and rate_rpm % spec.rate_step_rpm == 0,
        f"rotation_rate_rpm must be {spec.rate_min_rpm} to {spec.rate_max_rpm} in steps of {spec.rate_step_rpm} for a {spec.model}, got {rate_rpm}",
    )


def build_model_head(spec: VelodyneSpec, setup: SensorSetup, *, seed: int, stream: int) -> Head:
    """Build the kernel-side head of a model with its setup; ``stream`` is the sensor's number within the rig."""
    rate_rpm = mean_rate_rpm(setup)
    encoder = spec.encoder_at(rate_rpm)
    rate = rate_rpm + encoder.rate_offset_rpm
    return build_head(rate_rpm=rate, phase_deg=setup.phase_deg, encoder=encoder, rate_jitter=spec.rate_jitter, seed=seed, stream=stream)


def build_head(*, rate_rpm: float, phase_deg: float, encoder: EncoderSpec, rate_jitter: RateJitterSpec, seed: int, stream: int) -> Head:
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
        tick_cdeg=encoder.tick_cdeg,
        noise_cdeg=encoder.noise_cdeg,
        seed=np.uint64(seed),
        stream=stream,
    )


def no_head() -> Head:
    """Placeholder head of a sensor without one."""
    return Head(0, 0.0, 0.0, 0.0, 0.0, 1_000_000_000, 0.0, 0.0, 0.0, np.uint64(0), 0)


@kernel
def head_turns(head: Head, device_ns: int) -> float:
    """True angle in turns at a device time, in [0, 1) plus or minus the oscillations; accurate to 1e-12 turns for any length of run."""
    of_period = device_ns % _PERIOD_NS
    uniform_turns = head.phase_turns + (of_period * head.rate_crpm % _PERIOD_NS) / _PERIOD_NS
    # A speed oscillation of relative amplitude a at angular frequency w is an angle oscillation of a * rate / w.
    per_turn = head.per_turn_ratio / (2.0 * np.pi) * np.sin(2.0 * np.pi * uniform_turns + head.per_turn_phase_rad)
    turns_per_period = head.rate_crpm / _PERIOD_NS * head.drift_period_ns
    drift_angle = 2.0 * np.pi * (device_ns % head.drift_period_ns) / head.drift_period_ns + head.drift_phase_rad
    drift = head.drift_ratio * turns_per_period / (2.0 * np.pi) * np.sin(drift_angle)
    return float(uniform_turns + per_turn + drift)


@kernel
def turn_ns(head: Head) -> float:
    """Mean duration of a turn in device time."""
    return _PERIOD_NS / head.rate_crpm


@kernel
def passage_ns(head: Head, turns: float) -> int:
    """Device time, to some nanoseconds, at which the head has turned this far, counted from angle 0 before device time 0."""
    mean_ns = turn_ns(head)
    device_ns = int((turns - head.phase_turns) * mean_ns)
    for _ in range(_PASSAGE_STEPS):
        ahead = turns - head_turns(head, device_ns)
        device_ns += int((ahead - math.floor(ahead + 0.5)) * mean_ns)
    return device_ns


@kernel
def head_reading_cdeg(head: Head, device_ns: int, sequence: int) -> int:
    """Encoder reading at a firing sequence's first firing: hundredths of a degree, 0..35999.

    Args:
        head: The head.
        device_ns: Device time of the firing.
        sequence: Index of the firing sequence, which numbers the reading's random number.
    """
    angle = head_turns(head, device_ns) * TURN_CDEG
    if head.noise_cdeg > 0.0:
        angle += head.noise_cdeg * normal(head.seed, head.stream, sequence, _ENCODER_NOISE)
    if head.tick_cdeg > 0.0:
        angle = head.tick_cdeg * np.floor(angle / head.tick_cdeg + 0.5)
    return int(np.floor(angle + 0.5)) % TURN_CDEG
