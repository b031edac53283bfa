"""Step and noise of one laser's reflectivity bytes: what the sensor reports of noise before it is rounded to the step, and the way back."""

from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from hilsim.sensor.signal.signal import LaserSignals

Doubles = npt.NDArray[np.float64]
Curve = Sequence[tuple[float, float]]
_WHITE = 100.0
_COLUMNS = 101
_PLACES, _ERRORS = 40, 101
_NEAR = 4.0
_NOISES = np.geomspace(0.05, 30.0, 26)
_ZOOMS, _GRID = 4, 41
_LEAST_SD = 0.05
_FAR_BYTES, _FAR, _FAR_WEIGHT = np.array([3.0, 90.0]), 2.0, 0.2


def _normal_errors() -> Doubles:
    """Values of a standard normal distribution, equally likely, with its standard deviation."""
    errors = np.array([NormalDist().inv_cdf((number + 0.5) / _ERRORS) for number in range(_ERRORS)])
    return np.asarray(errors / errors.std(), np.float64)


_NORMAL = _normal_errors()


def _reported(value: Doubles, noise: float, step: float) -> Doubles:
    """Equally likely bytes of each value, ``float64[n, e]``."""
    return np.asarray(np.floor(np.floor((value[:, None] + noise * _NORMAL) / step + 0.5) * step + 0.5).clip(0.0, _WHITE))


def reported_moments(value: Doubles, noise: float, step: float) -> tuple[Doubles, Doubles]:
    """Mean and variance of the bytes that a laser reports, as ``noise.noisy_byte`` rounds and limits them.

    Args:
        value: ``float64[n]``, reflectivities without noise, in bytes.
        noise: Standard deviation before the rounding, in bytes.
        step: Step between the laser's bytes.
    """
    byte = _reported(value, noise, step)
    return byte.mean(axis=1), byte.var(axis=1)


def reported_repeats(value: Doubles, noise: float, step: float) -> Doubles:
    """Probability that two firings report the same byte, ``float64[n]``; arguments as of ``reported_moments``."""
    byte = _reported(value, noise, step)
    row = np.arange(byte.shape[0])[:, None] * _COLUMNS
    counts = np.bincount((byte.astype(np.int64) + row).ravel(), minlength=byte.shape[0] * _COLUMNS)
    return np.asarray(((counts.reshape(-1, _COLUMNS) / _ERRORS) ** 2).sum(axis=1), np.float64)


def reported_sd(byte: float, noise: float, step: float) -> float:
    """Standard deviation of a laser's bytes from firing to firing, as a mean (of squares) over surfaces near ``byte``.

    The surfaces lie evenly within 4 bytes of it, or as far as black is. Where the noise is above a quarter of the step, this is nearly the root of
    ``noise**2 + step**2 / 12``; below, less.
    """
    extent = min(_NEAR, max(byte, 0.5 * step))
    places = byte + extent * ((np.arange(_PLACES) + 0.5) / _PLACES * 2.0 - 1.0)
    return float(np.sqrt(reported_moments(places[places >= 0.0], noise, step)[1].mean()))


@lru_cache(maxsize=4096)  # a lidar's plan is built again with each change
def _reported_sds(byte: float, step: float) -> Doubles:
    """``reported_sd`` of each of ``_NOISES``; of bytes near white or beyond, which it limits, as on a scale without end."""
    if byte > _WHITE - _NEAR:
        return np.asarray(np.hypot(_NOISES, step / 12.0**0.5), np.float64)
    return np.array([max(reported_sd(byte, noise, step), _LEAST_SD * noise) for noise in _NOISES.tolist()])


def noise_before_steps(byte: float, sd: float, step: float) -> float:
    """The noise of which ``reported_sd`` makes ``sd``."""
    return float(np.exp(np.interp(np.log(max(sd, _LEAST_SD)), np.log(_reported_sds(byte, step)), np.log(_NOISES))))


def _lacks(curve: Curve) -> list[bool]:
    """Whether a curve has no dark bytes, and whether it has no bright ones."""
    return [curve[0][0] > _FAR * _FAR_BYTES[0], _FAR * curve[-1][0] < _FAR_BYTES[1]]


def noise_line(curve: Curve, step: float, level: float, ratio: float, step_from: float = 0.0) -> tuple[float, float]:
    """Noise of a black surface, and its growth with the byte, of a laser whose reported bytes have a measured curve of standard deviations.

    What the sensor reports of the line has the least relative deviations from the measured points (squares of logarithms). Where these have no dark or no
    bright bytes, the line is also drawn there, with a weight of a fifth, to the given one at their scale. It is nowhere below 0.

    Args:
        curve: Pairs of a rising byte and the standard deviation of the reported bytes there.
        step: Step between the laser's bytes.
        level: Noise of a black surface by the given line.
        ratio: Its growth with the byte by the given line.
        step_from: Reflectivity from which the bytes come in steps.
    """
    byte, sd = np.array(curve).T
    tables = [np.log(_reported_sds(float(place), step if place >= step_from else 1.0)) for place in byte]
    measured = np.log(np.maximum(sd, _LEAST_SD))
    noise = np.exp([np.interp(value, table, np.log(_NOISES)) for value, table in zip(measured, tables, strict=True)])
    scale = float(np.median(noise / np.maximum(level + ratio * byte, _LEAST_SD)))
    far = _FAR_BYTES[_lacks(curve)]
    drawn_to = np.log(scale * np.maximum(level + ratio * far, _LEAST_SD))

    def cost(levels: Doubles, ratios: Doubles) -> Doubles:
        total = np.zeros_like(levels)
        for place, value, table in zip(byte, measured, tables, strict=True):
            total += (np.interp(np.log(levels + ratios * place), np.log(_NOISES), table) - value) ** 2
        for place, value in zip(far, drawn_to, strict=True):
            total += (_FAR_WEIGHT * (np.log(levels + ratios * place) - value)) ** 2
        return total

    best, spread = (0.7, 0.03), (35.0, 35.0)
    for _ in range(_ZOOMS):
        levels, ratios = np.meshgrid(*(centre * np.geomspace(1.0 / extent, extent, _GRID) for centre, extent in zip(best, spread, strict=True)))
        least = np.unravel_index(np.argmin(cost(levels, ratios)), levels.shape)
        best = float(levels[least]), float(ratios[least])
        spread = tuple(extent ** (4.0 / (_GRID - 1)) for extent in spread)
    return best


def with_own_bytes(lasers: LaserSignals, step: Doubles, curves: Sequence[Curve]) -> LaserSignals:
    """Lasers with known steps and noise of their bytes in place of drawn ones.

    The noise of bytes that a laser's curve is far from follows the other lasers, which have them, or the unit.

    Args:
        lasers: Figures of the lasers.
        step: ``float64[c]``, known step between each laser's bytes; NaN: not known.
        curves: Pairs of a byte and the standard deviation of the reported bytes there, for each laser; none: not known.
    """
    step_from = np.where(np.isnan(step), lasers.step_from, 0.0)
    step = np.where(np.isnan(step), lasers.step, step)
    level, ratio = lasers.byte_noise.copy(), lasers.byte_noise_ratio.copy()
    known = sorted((any(_lacks(curve)), number) for number, curve in enumerate(curves) if curve)
    whole: list[tuple[float, float]] = []
    for is_part, number in known:
        near, growth = np.mean(whole, axis=0) if is_part and whole else (level[number], ratio[number])
        line = noise_line(curves[number], float(step[number]), float(near), float(growth), float(step_from[number]))
        level[number], ratio[number] = line
        if not is_part:
            whole.append(line)
    return lasers._replace(step=step, step_from=step_from, byte_noise=level, byte_noise_ratio=ratio)
