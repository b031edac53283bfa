"""Kernel-side signal of a receiver, and the figures of a unit's lasers drawn from the seed."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant
from hilsim.rng import Purpose, uniform
from hilsim.sensor.signal.spec import SignalSpec

BYTES = 256
HALVES = 2 * BYTES
"""Columns of ``LaserSignals.correction``: a byte and the half of its step that the echo's energy lies in."""
_LASERS_PER_STREAM = 256
_UNIT = constant(Purpose.SIGNAL_UNIT)
_STEP, _EMPTY, _RIPPLE, _RIPPLE_PHASE, _WALK = 1, 2, 3, 4, 16
_SECOND_HARMONIC = 0.28
RIPPLE_SEQUENCES = 5
"""Firing sequences after which the ripple repeats: 276.48 us of a VLP-16."""


class Signal(NamedTuple):
    """Kernel-side signal; ``SignalSpec`` explains the fields that are not below. All fields are scalars, as in ``Response``.

    Attributes:
        has_bytes: Whether reflectivity bytes have noise, steps or gains.
        loss_ratio: Largest share of firings that are lost at random; ``drop_out_ratios`` has the share by byte.
        code_min: Smallest distance code that is reported.
        code_max: Largest one.
    """

    has_bytes: bool
    split_distance_m: float
    split_loss_ratio: float
    split_light_ratio: float
    mixed_distance_m: float
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
        step_from: ``float64[c]``, reflectivity from which the laser's bytes come in these steps; below it every byte is reported.
        byte_noise: ``float64[c]``, standard deviation of the laser's byte on a black surface, before it is rounded to the laser's step.
        byte_noise_ratio: ``float64[c]``, growth of that standard deviation with the byte.
        empty_step: ``float64[c]``, step between the bytes of the laser's empty firings.
        has_empty_bytes: ``bool[c]``, whether the bytes of the laser's empty firings are known one by one.
        empty_bytes: ``uint8[c, n]``, those bytes, equally likely.
        ripple_m: ``float64[p, c]``, range error of each laser by the index of the firing sequence modulo p.
        correction: ``int8[c, 512]``, range correction in codes; column ``2 * byte + half``. Of a table by byte alone: ``np.repeat(table, 2, axis=1)``.
    """

    gain: npt.NDArray[np.float64]
    step: npt.NDArray[np.float64]
    step_from: npt.NDArray[np.float64]
    byte_noise: npt.NDArray[np.float64]
    byte_noise_ratio: npt.NDArray[np.float64]
    empty_step: npt.NDArray[np.float64]
    has_empty_bytes: npt.NDArray[np.bool_]
    empty_bytes: npt.NDArray[np.uint8]
    ripple_m: npt.NDArray[np.float64]
    correction: npt.NDArray[np.int8]


def build_signal(spec: SignalSpec, *, code_min: int, code_max: int, has_own_bytes: bool = False) -> Signal:
    """Build the kernel-side signal of a model.

    Args:
        spec: Signal of the model.
        code_min: Smallest distance code that the model reports.
        code_max: Largest one.
        has_own_bytes: Whether some laser's reflectivity has a gain, a step or noise of its own.
    """
    return Signal(
        has_bytes=spec.byte_noise > 0.0 or spec.byte_noise_ratio > 0.0 or spec.byte_step > 0.0 or has_own_bytes,
        split_distance_m=float(spec.split_distance_m),
        split_loss_ratio=float(spec.split_loss_ratio),
        split_light_ratio=float(spec.split_light_ratio),
        mixed_distance_m=float(spec.mixed_distance_m),
        loss_ratio=float(drop_out_ratios(spec).max()),
        one_sided_ratio=float(spec.one_sided_ratio),
        empty_byte_ratio=float(spec.empty_byte_ratio),
        lost_byte_ratio=float(spec.lost_byte_ratio),
        code_min=int(code_min),
        code_max=int(code_max),
    )


def drop_out_ratios(spec: SignalSpec) -> npt.NDArray[np.float64]:
    """Share of firings that are lost at random by the reflectivity byte that they would report, ``float64[256]``."""
    if isinstance(spec.drop_out_ratio, tuple):
        byte, share = np.array(spec.drop_out_ratio).T
        return np.asarray(np.interp(np.arange(float(BYTES)), byte, share), np.float64)
    return np.full(BYTES, float(spec.drop_out_ratio))


def drawn_lasers(
    spec: SignalSpec, baseline: npt.NDArray[np.uint8], gain: npt.NDArray[np.float64], range_codes: npt.NDArray[np.int64], *, seed: int, stream: int
) -> LaserSignals:
    """Draw the figures of a unit's lasers.

    The distributions are recommended, unproven, but for what they bring about: shares of odd range steps and steps of bytes as measured on real units.

    Args:
        spec: Signal of the model.
        baseline: ``uint8[c]``, reflectivity byte of each laser's empty firings.
        gain: ``float64[c]``, ratio of each laser's reflectivity bytes to exact ones.
        range_codes: ``int64[c, 256]``, known range correction of each laser by byte; a laser without one has a drawn one.
        seed: Random seed of the rig.
        stream: Number of the sensor within the rig.
    """
    key = np.uint64(seed)
    streams = [stream * _LASERS_PER_STREAM + laser for laser in range(baseline.size)]
    step, empty = (np.array([uniform(key, of_laser, index, _UNIT) for of_laser in streams]) for index in (_STEP, _EMPTY))
    return LaserSignals(
        gain=gain,
        step=spec.byte_step * (0.5 + step) if spec.byte_step > 0.0 else np.ones(baseline.size),
        step_from=np.full(baseline.size, float(spec.byte_step_from)),
        byte_noise=np.full(baseline.size, float(spec.byte_noise)),
        byte_noise_ratio=np.full(baseline.size, float(spec.byte_noise_ratio)),
        empty_step=np.maximum(baseline + empty - 0.5, 0.6),
        has_empty_bytes=np.zeros(baseline.size, np.bool_),
        empty_bytes=baseline[:, None],
        ripple_m=_drawn_ripple_m(spec, key, streams),
        correction=np.array(
            [
                np.repeat(known, 2) if known.any() else _drawn_correction(spec, key, of_laser)
                for known, of_laser in zip(range_codes, streams, strict=True)
            ],
            np.int8,
        ).reshape(baseline.size, HALVES),
    )


def ideal_lasers(spec: SignalSpec, baseline: npt.NDArray[np.uint8], gain: npt.NDArray[np.float64]) -> LaserSignals:
    """Figures of lasers that are all alike: no gain, no correction, no ripple, and the model's mean step; arguments as of ``drawn_lasers``."""
    lasers = baseline.size
    return LaserSignals(
        gain=gain,
        step=np.full(lasers, spec.byte_step or 1.0),
        step_from=np.full(lasers, float(spec.byte_step_from)),
        byte_noise=np.full(lasers, float(spec.byte_noise)),
        byte_noise_ratio=np.full(lasers, float(spec.byte_noise_ratio)),
        empty_step=np.maximum(baseline.astype(np.float64), 1.0),
        has_empty_bytes=np.zeros(lasers, np.bool_),
        empty_bytes=baseline[:, None],
        ripple_m=np.zeros((1, lasers)),
        correction=np.zeros((lasers, HALVES), np.int8),
    )


def _drawn_ripple_m(spec: SignalSpec, key: np.uint64, streams: list[int]) -> npt.NDArray[np.float64]:
    """Draw a unit's ripple: a laser has the values of the one before it a firing sequence later, as three VLP-16s show; so does the second harmonic's share."""
    if spec.ripple_m == 0.0:
        return np.zeros((1, len(streams)))
    amplitude_m = spec.ripple_m * (0.75 + 0.5 * uniform(key, streams[0], _RIPPLE, _UNIT))
    sequence, laser = np.mgrid[:RIPPLE_SEQUENCES, : len(streams)]
    angle = 2.0 * np.pi * ((sequence - laser) / RIPPLE_SEQUENCES + uniform(key, streams[0], _RIPPLE_PHASE, _UNIT))
    return np.asarray(amplitude_m * (np.cos(angle) + _SECOND_HARMONIC * np.sin(2.0 * angle)))


def _drawn_correction(spec: SignalSpec, key: np.uint64, of_laser: int) -> npt.NDArray[np.int8]:
    """Draw a laser's range correction: a walk over the bytes in steps of one code, reflected at the largest correction."""
    walk = np.zeros(HALVES, np.int8)
    limit = spec.correction_codes
    if limit == 0:
        return walk
    at = round((2.0 * uniform(key, of_laser, _WALK, _UNIT) - 1.0) * limit)
    # NumPy's Philox by the same key: a thousand draws a laser, which kernels as plain Python would take a second for.
    draws = np.random.Generator(np.random.Philox(key=np.array([key, _UNIT << 32 | of_laser], np.uint64))).random((BYTES, 4))
    for byte, (change, direction, straddle, up) in enumerate(draws.tolist()):
        # Several changes from a byte to the next are one in effect: parity alone shows.
        if change < 0.5 * (1.0 - math.exp(-2.0 * spec.correction_changes_per_byte)):
            at = _moved(at, direction, limit)
        walk[2 * byte] = at
        walk[2 * byte + 1] = _moved(at, up, limit) if straddle < spec.correction_straddle_ratio else at
    return walk


def _moved(at: int, direction: float, limit: int) -> int:
    step = 1 if direction < 0.5 else -1
    return at + step if abs(at + step) <= limit else at - step
