"""Kernel-side signal of a receiver, and the figures of a unit's lasers drawn from the seed."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant
from hilsim.rng import Purpose, normal, uniform
from hilsim.sensor.signal.spec import SignalSpec

BYTES = 256
HALVES = 2 * BYTES
"""Columns of ``LaserSignals.correction``: a byte and the half of its step that the echo's energy lies in."""
_LASERS_PER_STREAM = 256
_UNIT = constant(Purpose.SIGNAL_UNIT)
_GAIN, _STEP, _EMPTY, _WALK = 0, 1, 2, 16


class Signal(NamedTuple):
    """Kernel-side signal; ``SignalSpec`` explains the fields that are not below. All fields are scalars, as in ``Response``.

    Attributes:
        has_bytes: Whether reflectivity bytes have noise, steps or gains.
        has_memory: Whether range noise is correlated.
        weight: Weights of the range noise of this firing, the last and the last but one; their squares add up to 1.
        loss_ratio: Share of firings that are lost at random.
        code_min: Smallest distance code that is reported.
        code_max: Largest one.
    """

    has_bytes: bool
    has_memory: bool
    byte_noise: float
    byte_noise_ratio: float
    weight: tuple[float, float, float]
    split_distance_m: float
    split_loss_ratio: float
    loss_ratio: float
    one_sided_ratio: float
    empty_byte_ratio: float
    lost_byte_ratio: float
    code_min: int
    code_max: int


class LaserSignals(NamedTuple):
    """Figures of a unit's ``c`` lasers, drawn from a seed or measured.

    Attributes:
        gain: ``float64[c]``, ratio of the laser's reflectivity bytes to exact ones.
        step: ``float64[c]``, step between the laser's reflectivity bytes; 1 for every byte.
        empty_step: ``float64[c]``, step between the bytes of the laser's empty firings.
        correction: ``int8[c, 512]``, range correction in codes; column ``2 * byte + half``. Of a table by byte alone: ``np.repeat(table, 2, axis=1)``.
    """

    gain: npt.NDArray[np.float64]
    step: npt.NDArray[np.float64]
    empty_step: npt.NDArray[np.float64]
    correction: npt.NDArray[np.int8]


def build_signal(spec: SignalSpec, *, code_min: int, code_max: int) -> Signal:
    """Build the kernel-side signal of a model.

    Args:
        spec: Signal of the model.
        code_min: Smallest distance code that the model reports.
        code_max: Largest one.
    """
    last, before = spec.noise_memory
    norm = math.sqrt(1.0 + last * last + before * before)
    return Signal(
        has_bytes=spec.byte_noise > 0.0 or spec.byte_noise_ratio > 0.0 or spec.byte_step > 0.0 or spec.gain_spread_ratio > 0.0,
        has_memory=last != 0.0 or before != 0.0,
        byte_noise=float(spec.byte_noise),
        byte_noise_ratio=float(spec.byte_noise_ratio),
        weight=(1.0 / norm, last / norm, before / norm),
        split_distance_m=float(spec.split_distance_m),
        split_loss_ratio=float(spec.split_loss_ratio),
        loss_ratio=float(spec.drop_out_ratio),
        one_sided_ratio=float(spec.one_sided_ratio),
        empty_byte_ratio=float(spec.empty_byte_ratio),
        lost_byte_ratio=float(spec.lost_byte_ratio),
        code_min=int(code_min),
        code_max=int(code_max),
    )


def drawn_lasers(spec: SignalSpec, baseline: npt.NDArray[np.uint8], *, seed: int, stream: int) -> LaserSignals:
    """Draw the figures of a unit's lasers.

    The distributions are recommended, unproven, but for what they bring about: shares of odd range steps and steps of bytes as measured on real units.

    Args:
        spec: Signal of the model.
        baseline: ``uint8[c]``, reflectivity byte of each laser's empty firings.
        seed: Random seed of the rig.
        stream: Number of the sensor within the rig.
    """
    key = np.uint64(seed)
    streams = [stream * _LASERS_PER_STREAM + laser for laser in range(baseline.size)]
    gain = np.array([normal(key, of_laser, _GAIN, _UNIT) for of_laser in streams])
    step, empty = (np.array([uniform(key, of_laser, index, _UNIT) for of_laser in streams]) for index in (_STEP, _EMPTY))
    return LaserSignals(
        gain=np.clip(1.0 + spec.gain_spread_ratio * gain, 0.5, 1.5),
        step=spec.byte_step * (0.5 + step) if spec.byte_step > 0.0 else np.ones(baseline.size),
        empty_step=np.maximum(baseline + empty - 0.5, 0.6),
        correction=np.array([_drawn_correction(spec, key, of_laser) for of_laser in streams], np.int8).reshape(baseline.size, HALVES),
    )


def _drawn_correction(spec: SignalSpec, key: np.uint64, of_laser: int) -> npt.NDArray[np.int8]:
    """Draw a laser's range correction: a walk over the bytes in steps of one code, reflected at the largest correction."""
    walk = np.zeros(HALVES, np.int8)
    limit = spec.correction_codes
    if limit == 0:
        return walk
    at = round((2.0 * uniform(key, of_laser, _WALK, _UNIT) - 1.0) * limit)
    for byte in range(BYTES):
        change, direction, straddle, up = (uniform(key, of_laser, _WALK + 1 + 4 * byte + draw, _UNIT) for draw in range(4))
        # Several changes from a byte to the next are one in effect: parity alone shows.
        if change < 0.5 * (1.0 - math.exp(-2.0 * spec.correction_changes_per_byte)):
            at = _moved(at, direction, limit)
        walk[2 * byte] = at
        walk[2 * byte + 1] = _moved(at, up, limit) if straddle < spec.correction_straddle_ratio else at
    return walk


def _moved(at: int, direction: float, limit: int) -> int:
    step = 1 if direction < 0.5 else -1
    return at + step if abs(at + step) <= limit else at - step
