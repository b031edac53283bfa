"""Noise of reflectivity bytes, and correction of ranges by byte: of sixteen echoes at a time, and of one."""

import math

from hilsim.compilation.jit import kernel
from hilsim.compilation.lanes import Doubles, floor_lanes, greater_lanes, lesser_lanes, select
from hilsim.sensor.signal.signal import Signal

_RETRO_MIN, _BYTE_MAX = 101, 255
_WHITE = 100.0


@kernel
def noisy_bytes(
    percent: Doubles, gain: Doubles, step: Doubles, step_from: Doubles, level: Doubles, ratio: Doubles, error: Doubles, diffuse_max: int
) -> tuple[Doubles, Doubles]:
    """Reflectivity bytes of sixteen diffuse echoes, and their columns in ``LaserSignals.correction``.

    Args:
        percent: Reflectivities without noise, in percent.
        gain: Gains of the lasers.
        step: Steps of the lasers' bytes.
        step_from: Reflectivities from which their bytes come in these steps.
        level: Standard deviations of the lasers' bytes on a black surface.
        ratio: Growths of these standard deviations with the byte.
        error: Standard normal random numbers.
        diffuse_max: Largest byte of a diffuse surface.
    """
    value = percent * gain
    value = value + error * (value * ratio + level)
    here = select(value >= step_from, step, 1.0)
    cell = value / here + 0.5
    number = floor_lanes(cell)
    byte = lesser_lanes(greater_lanes(floor_lanes(number * here + 0.5), 0.0), float(diffuse_max))
    return byte, byte * 2.0 + select(cell - number >= 0.5, 1.0, 0.0)


@kernel
def noisy_byte(
    byte: int, percent: float, gain: float, step: float, step_from: float, level: float, ratio: float, error: float, diffuse_max: int
) -> tuple[int, int]:
    """``noisy_bytes`` of one echo; of a retro-reflector, whose ``byte`` is above 100, the noise is a white surface's (unproven: hardly any were captured)."""
    if byte >= _RETRO_MIN and byte > diffuse_max:
        noisy = math.floor(byte + error * (level + ratio * _WHITE) + 0.5)
        noisy = min(max(noisy, _RETRO_MIN), _BYTE_MAX)
        return noisy, 2 * noisy
    value = percent * gain
    value = value + error * (value * ratio + level)
    here = step if value >= step_from else 1.0
    cell = value / here + 0.5
    number = math.floor(cell)
    noisy = min(max(math.floor(number * here + 0.5), 0), diffuse_max)
    return noisy, 2 * noisy + (1 if cell - number >= 0.5 else 0)


@kernel
def shifted_code(signal: Signal, code: int, correction: int) -> int:
    """Distance code with the laser's correction, within the model's limits."""
    if correction == 0:
        return code
    return min(max(code + correction, signal.code_min), signal.code_max)
