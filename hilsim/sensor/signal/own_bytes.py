"""Step and noise of one laser's reflectivity bytes: what the sensor reports of noise before it is rounded to the step, and the way back."""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from hilsim.sensor.signal.signal import LaserSignals

Doubles = npt.NDArray[np.float64]
_WHITE = 100.0
_PLACES, _ERRORS = 32, 201
_HALVINGS = 16
_LEAST_SD = 0.05


def _normal_errors() -> Doubles:
    """Values of a standard normal distribution, equally likely, with its standard deviation."""
    errors = np.array([NormalDist().inv_cdf((number + 0.5) / _ERRORS) for number in range(_ERRORS)])
    return np.asarray(errors / errors.std(), np.float64)


_NORMAL = _normal_errors()


def reported_moments(value: Doubles, noise: float, step: float) -> tuple[Doubles, Doubles]:
    """Mean and variance of the bytes that a laser reports, as ``noise.noisy_byte`` rounds and limits them.

    Args:
        value: ``float64[n]``, reflectivities without noise, in bytes.
        noise: Standard deviation before the rounding, in bytes.
        step: Step between the laser's bytes.
    """
    byte = np.floor(np.floor((value[:, None] + noise * _NORMAL) / step + 0.5) * step + 0.5).clip(0.0, _WHITE)
    return byte.mean(axis=1), byte.var(axis=1)


def reported_sd(byte: float, noise: float, step: float) -> float:
    """Standard deviation of a laser's bytes from firing to firing, as a mean (of squares) over surfaces of a byte within half a step of ``byte``.

    Where the noise is above a quarter of the step, this is nearly the root of ``noise**2 + step**2 / 12``; below, less.
    """
    places = byte + step * ((np.arange(_PLACES) + 0.5) / _PLACES - 0.5)
    return float(np.sqrt(reported_moments(places[places >= 0.0], noise, step)[1].mean()))


def noise_before_steps(byte: float, sd: float, step: float) -> float:
    """The noise of which ``reported_sd`` makes ``sd``."""
    low, high = 0.0, 2.0 * sd + step
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if reported_sd(byte, middle, step) < sd else (low, middle)
    return low


def noise_line(curve: Sequence[tuple[float, float]], step: float) -> tuple[float, float]:
    """Noise of a black surface, and its growth with the byte, of a laser whose reported bytes have a measured curve of standard deviations.

    The line has the least relative deviations from the measured points, and is nowhere below 0.

    Args:
        curve: Pairs of a byte and the standard deviation of the reported bytes there.
        step: Step between the laser's bytes.
    """
    byte = np.array([place for place, _ in curve])
    noise = np.array([noise_before_steps(place, sd, step) for place, sd in curve])
    weight = 1.0 / np.maximum(noise, _LEAST_SD)
    sides = np.stack([weight, weight * byte], axis=1)
    if byte.size > 1:
        level, ratio = np.linalg.lstsq(sides, weight * noise, rcond=None)[0]
        if level >= 0.0 and ratio >= 0.0:
            return float(level), float(ratio)
        if level < 0.0:
            return 0.0, float(np.linalg.lstsq(sides[:, 1:], weight * noise, rcond=None)[0][0])
    return float(np.average(noise, weights=weight**2)), 0.0


def with_own_bytes(lasers: LaserSignals, step: Doubles, curves: Sequence[Sequence[tuple[float, float]]]) -> LaserSignals:
    """Lasers with known steps and noise of their bytes in place of drawn ones.

    Args:
        lasers: Figures of the lasers.
        step: ``float64[c]``, known step between each laser's bytes; NaN: not known.
        curves: Of each laser pairs of a byte and the standard deviation of its reported bytes there; none: not known.
    """
    step = np.where(np.isnan(step), lasers.step, step)
    level, ratio = lasers.byte_noise.copy(), lasers.byte_noise_ratio.copy()
    for number, curve in enumerate(curves):
        if curve:
            level[number], ratio[number] = noise_line(curve, float(step[number]))
    return lasers._replace(step=step, byte_noise=level, byte_noise_ratio=ratio)
