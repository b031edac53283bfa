"""Noise of reflectivity bytes, and correction of ranges by byte: of sixteen echoes at a time, and of one."""

import math

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import borrowing_kernel, inlined_kernel, kernel
from hilsim.compilation.lanes import (
    Doubles,
    doubles,
    doubles_of,
    floor_lanes,
    gather,
    greater_lanes,
    lane_numbers,
    lesser_lanes,
    numbers,
    signed_doubles,
)
from hilsim.sensor.signal.signal import HALVES, NOISES, PLACES, PLACES_PER_M, RANGES, RANGES_PER_M, Signal

_RETRO_MIN, _BYTE_MAX = 101, 255
_WHITE = 100
_APART, _PER_PLACE = 37.0, 1.0 / PLACES
"""Rows of ``LaserSignals.place_noise`` from a laser to the next."""


@borrowing_kernel
def noisy_bytes(
    percent: Doubles,
    gain: Doubles,
    byte_noise: npt.NDArray[np.float32],
    reported: npt.NDArray[np.int32],
    first_channel: int,
    error: Doubles,
    diffuse_max: int,
) -> tuple[Doubles, Doubles]:
    """Reflectivity bytes of sixteen diffuse echoes, and their columns in ``LaserSignals.correction``.

    Args:
        percent: Reflectivities without noise, in percent; of any value where there is no echo.
        gain: Gains of the lasers.
        byte_noise: ``LaserSignals.byte_noise``.
        reported: ``LaserSignals.reported``.
        first_channel: Channel of the first echo.
        error: Standard normal random numbers.
        diffuse_max: Largest byte of a diffuse surface.
    """
    channel = lesser_lanes(signed_doubles(lane_numbers()) + float(first_channel), float(reported.shape[0] // HALVES - 1))
    value = percent * gain
    row = floor_lanes(greater_lanes(lesser_lanes(value, NOISES - 1.0), 0.0)) + channel * float(NOISES)
    value = value + error * doubles(gather(byte_noise, numbers(row), 0))
    row = floor_lanes(greater_lanes(lesser_lanes(value * 2.0, HALVES - 1.0), 0.0)) + channel * float(HALVES)
    column = lesser_lanes(doubles_of(gather(reported, numbers(row), 0)), 2.0 * diffuse_max + 1.0)
    return floor_lanes(column * 0.5), column


@borrowing_kernel
def placed_errors(error: Doubles, range_m: Doubles, place_noise: npt.NDArray[np.float32], first_channel: int) -> Doubles:
    """Errors of sixteen bytes, larger at some places than at others; ``place_noise`` is that of ``LaserSignals``, and has more than one row."""
    place = range_m * PLACES_PER_M + (signed_doubles(lane_numbers()) + float(first_channel)) * _APART
    row = floor_lanes(greater_lanes(lesser_lanes(place - floor_lanes(place * _PER_PLACE) * float(PLACES), PLACES - 1.0), 0.0))
    return error * doubles(gather(place_noise, numbers(row), 0))


@inlined_kernel
def placed_error(error: float, range_m: float, place_noise: npt.NDArray[np.float32], channel: int) -> float:
    """``placed_errors`` of one byte."""
    place = range_m * PLACES_PER_M + channel * _APART
    return error * float(place_noise[int(place - math.floor(place * _PER_PLACE) * float(PLACES)), 0])


@borrowing_kernel
def ranged_percents(percent: Doubles, range_m: Doubles, range_gain: npt.NDArray[np.float32]) -> Doubles:
    """Reflectivities of sixteen echoes as the unit reports them at their ranges; ``range_gain`` is that of ``LaserSignals``."""
    row = floor_lanes(greater_lanes(lesser_lanes(range_m * RANGES_PER_M, RANGES - 1.0), 0.0))
    return percent * doubles(gather(range_gain, numbers(row), 0))


@inlined_kernel
def noisy_byte(
    byte: int, percent: float, byte_noise: npt.NDArray[np.float32], reported: npt.NDArray[np.int32], channel: int, error: float, diffuse_max: int
) -> tuple[int, int]:
    """``noisy_bytes`` of one echo, whose ``percent`` has the laser's gain.

    Of a retro-reflector, whose ``byte`` is above 100, the noise is a white surface's (unproven: hardly any were captured).
    """
    place = _WHITE if byte >= _RETRO_MIN and byte > diffuse_max else int(min(max(percent, 0.0), NOISES - 1.0))
    change = error * byte_noise[channel * NOISES + place, 0]
    if byte >= _RETRO_MIN and byte > diffuse_max:
        noisy = min(max(math.floor(byte + change + 0.5), _RETRO_MIN), _BYTE_MAX)
        return noisy, 2 * noisy
    row = int(min(max((percent + change) * 2.0, 0.0), HALVES - 1.0))
    column = min(int(reported[channel * HALVES + row, 0]), 2 * diffuse_max + 1)
    return column // 2, column


@kernel
def shifted_code(signal: Signal, code: int, correction: int) -> int:
    """Distance code with the laser's correction, within the model's limits."""
    if correction == 0:
        return code
    return min(max(code + correction, signal.code_min), signal.code_max)
