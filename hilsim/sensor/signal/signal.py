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
NOISES = 128
"""Columns of ``LaserSignals.byte_noise``; brighter surfaces have the noise of the last one."""
RANGES = 512
RANGES_PER_M = 4.0
"""Rows of ``LaserSignals.range_gain``, and how many of them a metre has."""
PLACES, PLACES_PER_M = 256, 20.0
"""Rows of ``LaserSignals.place_noise``, and how many of them a metre of range has."""
_LASERS_PER_STREAM = 256
_UNIT = constant(Purpose.SIGNAL_UNIT)
_STEP, _EMPTY, _RIPPLE_PHASE, _WALK, _BANDS, _PLACES = 1, 2, 4, 16, 32, 64
_BYTES_PER_BAND, _OF_BANDS = 10, 1.0 / 3.0
_SECOND_HARMONIC = 0.28
RIPPLE_SEQUENCES = 5
"""Firing sequences after which the ripple repeats: 276.48 us of a VLP-16."""


class Signal(NamedTuple):
    """Kernel-side signal; ``SignalSpec`` explains the fields that are not below. All fields are scalars, as in ``Response``.

    Attributes:
        has_bytes: Whether reflectivity bytes have noise, steps or gains.
        has_range_gain: Whether reflectivities depend on the range.
        loss_ratio: Largest share of firings that are lost at random; ``drop_out_ratios`` has the share by byte.
        code_min: Smallest distance code that is reported.
        code_max: Largest one.
    """

    has_bytes: bool
    has_range_gain: bool
    split_distance_m: float
    split_loss_ratio: float
    split_light_ratio: float
    mixed_distance_m: float
    loss_ratio: float
    one_sided_ratio: float
    empty_byte_ratio: float
    lost_byte_ratio: float
    lost_byte_from: float
    lost_clip_ratio: float
    relief_ratio: float
    code_min: int
    code_max: int


class LaserSignals(NamedTuple):
    """Figures of a unit's ``c`` lasers, drawn from a seed or measured.

    Attributes:
        gain: ``float64[c]``, ratio of the laser's reflectivity bytes to exact ones.
        byte_noise: ``float32[c * 128, 1]``, standard deviation of each laser's byte by the byte, before it becomes one that the laser reports.
        place_noise: ``float32[256, 1]``, ratio of that noise by place, which is the range of a laser; ``[1, 1]``: it is everywhere the same.
        reported: ``int32[c * 512, 1]``, column of ``correction``, and so the byte, that each laser reports of a reflectivity, by twice the reflectivity.
        range_gain: ``float32[512, 1]``, ratio of reflectivities by range, in quarters of a metre.
        empty_step: ``float64[c]``, step between the bytes of the laser's empty firings.
        has_empty_bytes: ``bool[c]``, whether the bytes of the laser's empty firings are known one by one.
        empty_bytes: ``uint8[c, n]``, those bytes, equally likely.
        ripple_m: ``float64[p, c]``, range error of each laser by the index of the firing sequence modulo p.
        correction: ``int8[c, 512]``, range correction in codes; column ``2 * byte + half``. Of a table by byte alone: ``np.repeat(table, 2, axis=1)``.
    """

    gain: npt.NDArray[np.float64]
    byte_noise: npt.NDArray[np.float32]
    place_noise: npt.NDArray[np.float32]
    reported: npt.NDArray[np.int32]
    range_gain: npt.NDArray[np.float32]
    empty_step: npt.NDArray[np.float64]
    has_empty_bytes: npt.NDArray[np.bool_]
    empty_bytes: npt.NDArray[np.uint8]
    ripple_m: npt.NDArray[np.float64]
    correction: npt.NDArray[np.int8]


def build_signal(spec: SignalSpec, *, code_min: int, code_max: int, has_own_bytes: bool = False, has_range_gain: bool = False) -> Signal:
    """Build the kernel-side signal of a model.

    Args:
        spec: Signal of the model.
        code_min: Smallest distance code that the model reports.
        code_max: Largest one.
        has_own_bytes: Whether some laser's reflectivity has a gain, bytes or noise of its own.
        has_range_gain: Whether reflectivities depend on the range.
    """
    return Signal(
        has_bytes=spec.byte_noise > 0.0 or spec.byte_noise_ratio > 0.0 or spec.byte_step > 0.0 or has_own_bytes or has_range_gain,
        has_range_gain=has_range_gain,
        split_distance_m=float(spec.split_distance_m),
        split_loss_ratio=float(spec.split_loss_ratio),
        split_light_ratio=float(spec.split_light_ratio),
        mixed_distance_m=float(spec.mixed_distance_m),
        loss_ratio=float(drop_out_ratios(spec).max()),
        one_sided_ratio=float(spec.one_sided_ratio),
        empty_byte_ratio=float(spec.empty_byte_ratio),
        lost_byte_ratio=float(spec.lost_byte_ratio),
        lost_byte_from=float(spec.lost_byte_from),
        lost_clip_ratio=float(spec.lost_clip_ratio),
        relief_ratio=float(spec.relief_ratio),
        code_min=int(code_min),
        code_max=int(code_max),
    )


def drop_out_ratios(spec: SignalSpec) -> npt.NDArray[np.float64]:
    """Share of firings that are lost at random by the reflectivity byte that they would report, ``float64[256]``."""
    if isinstance(spec.drop_out_ratio, tuple):
        byte, share = np.array(spec.drop_out_ratio).T
        return np.asarray(np.interp(np.arange(float(BYTES)), byte, share), np.float64)
    return np.full(BYTES, float(spec.drop_out_ratio))


def noise_by_byte(spec: SignalSpec) -> npt.NDArray[np.float64]:
    """Standard deviation of the byte of a model by the byte, ``float64[128]``, before it becomes one that a laser reports."""
    return np.asarray(spec.byte_noise + spec.byte_noise_ratio * (np.arange(NOISES) + 0.5), np.float64)


def noise_columns(noise: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """``LaserSignals.byte_noise`` of a table ``float64[c, 128]``."""
    return noise.astype(np.float32).reshape(-1, 1)


def bytes_in_steps(spec: SignalSpec, ratio: float = 1.0) -> npt.NDArray[np.bool_]:
    """Bytes that a laser reports, ``bool[256]``.

    Args:
        spec: Signal of the model.
        ratio: The laser's steps in shares of the model's.
    """
    reported, value = np.zeros(BYTES, np.bool_), 0.0
    largest = max(ratio * spec.byte_step, 1.0)
    while value < BYTES - 0.5:
        reported[math.floor(value + 0.5)] = True
        beyond = value - spec.byte_step_from
        grown = 1.0 + ratio * spec.byte_step_growth * beyond if spec.byte_step_growth > 0.0 else largest
        value += min(grown, largest) if beyond >= 0.0 else 1.0
    return reported


def reported_columns(reported: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """``LaserSignals.reported`` of the bytes that lasers report, ``bool[c, 256]``: a reflectivity becomes the nearest of them, half-way the brighter one."""
    place = np.arange(HALVES) / 2.0
    columns = np.zeros((reported.shape[0], HALVES), np.int32)
    for laser, of_laser in enumerate(reported):
        bytes_ = np.flatnonzero(of_laser)
        nearest = bytes_[np.searchsorted(0.5 * (bytes_[1:] + bytes_[:-1]), place, side="right")]
        columns[laser] = 2 * nearest + (place >= nearest)
    return columns.reshape(-1, 1)


def drawn_lasers(
    spec: SignalSpec, baseline: npt.NDArray[np.uint8], gain: npt.NDArray[np.float64], range_codes: npt.NDArray[np.int64], *, seed: int, stream: int
) -> LaserSignals:
    """Draw the figures of a unit's lasers.

    The distributions are recommended, unproven, but for what they bring about: shares of odd range steps and steps of bytes as measured on real units.

    Args:
        spec: Signal of the model.
        baseline: ``uint8[c]``, reflectivity byte of each laser's empty firings.
        gain: ``float64[c]``, ratio of each laser's reflectivity bytes to exact ones.
        range_codes: ``int64[c, 512]``, known range correction of each laser by half byte; a laser without one has a drawn one.
        seed: Random seed of the rig.
        stream: Number of the sensor within the rig.
    """
    key = np.uint64(seed)
    streams = [stream * _LASERS_PER_STREAM + laser for laser in range(baseline.size)]
    step, empty = (np.array([uniform(key, of_laser, index, _UNIT) for of_laser in streams]) for index in (_STEP, _EMPTY))
    return ideal_lasers(spec, baseline, gain)._replace(
        byte_noise=noise_columns(noise_by_byte(spec)[None, :] * np.array([_drawn_noise_ratio(spec, key, of_laser) for of_laser in streams])),
        place_noise=_drawn_place_noise(spec, key, streams[0]),
        reported=reported_columns(np.array([bytes_in_steps(spec, 0.5 + of_laser) for of_laser in step])),
        empty_step=np.maximum(baseline + empty - 0.5, 0.6),
        ripple_m=ripple(spec.ripple_m, len(streams), uniform(key, streams[0], _RIPPLE_PHASE, _UNIT)),
        correction=np.array(
            [known if known.any() else _drawn_correction(spec, key, of_laser) for known, of_laser in zip(range_codes, streams, strict=True)],
            np.int8,
        ),
    )


def ideal_lasers(spec: SignalSpec, baseline: npt.NDArray[np.uint8], gain: npt.NDArray[np.float64]) -> LaserSignals:
    """Figures of lasers that are all alike: no gain, no correction, no ripple, and the model's mean step; arguments as of ``drawn_lasers``."""
    lasers = baseline.size
    return LaserSignals(
        gain=gain,
        byte_noise=noise_columns(np.tile(noise_by_byte(spec), (lasers, 1))),
        place_noise=np.ones((1, 1), np.float32),
        reported=reported_columns(np.tile(bytes_in_steps(spec), (lasers, 1))),
        range_gain=np.ones((RANGES, 1), np.float32),
        empty_step=np.maximum(baseline.astype(np.float64), 1.0),
        has_empty_bytes=np.zeros(lasers, np.bool_),
        empty_bytes=baseline[:, None],
        ripple_m=np.zeros((1, lasers)),
        correction=np.zeros((lasers, HALVES), np.int8),
    )


def _drawn_noise_ratio(spec: SignalSpec, key: np.uint64, of_laser: int) -> npt.NDArray[np.float64]:
    """Draw a laser's noise in shares of the model's by byte, ``float64[128]``: each band of bytes has its own, linear between their middles."""
    if spec.byte_noise_spread == 0.0:
        return np.ones(NOISES)
    place = np.arange(0, NOISES + _BYTES_PER_BAND, _BYTES_PER_BAND)
    errors = np.array([normal(key, of_laser, _BANDS + band, _UNIT) for band in range(place.size)])
    spread = spec.byte_noise_spread * math.sqrt(_OF_BANDS)
    return np.exp(np.interp(np.arange(NOISES), place, spread * (errors - spread)))


def _drawn_place_noise(spec: SignalSpec, key: np.uint64, stream: int) -> npt.NDArray[np.float32]:
    """Draw how much larger the noise of bytes is at some places than at others."""
    if spec.byte_noise_spread == 0.0:
        return np.ones((1, 1), np.float32)
    errors = np.array([[normal(key, stream, _PLACES + place, _UNIT)] for place in range(PLACES)])
    spread = spec.byte_noise_spread * math.sqrt(1.0 - _OF_BANDS)
    return np.exp(spread * (errors - spread)).astype(np.float32)


def ripple(amplitude_m: float, lasers: int, phase: float) -> npt.NDArray[np.float64]:
    """``LaserSignals.ripple_m`` by its amplitude and phase, in periods.

    A laser has the values of the one before it a firing sequence later, as three VLP-16s show; so does the second harmonic's share.
    """
    if amplitude_m == 0.0:
        return np.zeros((1, lasers))
    sequence, laser = np.mgrid[:RIPPLE_SEQUENCES, :lasers]
    angle = 2.0 * np.pi * ((sequence - laser) / RIPPLE_SEQUENCES + phase)
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
