"""Bytes that one laser reports, and their noise: what the sensor reports of noise before it becomes one of these bytes, and the way back."""

from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from hilsim.sensor.signal.signal import HALVES, NOISES, RANGES, RANGES_PER_M, LaserSignals, noise_columns

Doubles = npt.NDArray[np.float64]
Columns = npt.NDArray[np.int32]
Curve = Sequence[tuple[float, float]]
_WHITE = 100.0
_PLACES, _ERRORS = 40, 101
_NEAR = 4.0
_NOISES = np.geomspace(0.05, 30.0, 26)
_MIN_SD = 0.05


def _normal_errors() -> Doubles:
    """Values of a standard normal distribution, equally likely, with its standard deviation."""
    errors = np.array([NormalDist().inv_cdf((number + 0.5) / _ERRORS) for number in range(_ERRORS)])
    return np.asarray(errors / errors.std(), np.float64)


_NORMAL = _normal_errors()


def _reported(value: Doubles, noise: float, columns: Columns) -> Doubles:
    """Equally likely bytes of each value, ``float64[n, e]``."""
    place = np.floor(2.0 * (value[:, None] + noise * _NORMAL)).clip(0, HALVES - 1).astype(np.int64)
    return np.asarray((columns[place] // 2).clip(0, _WHITE), np.float64)


def reported_moments(value: Doubles, noise: float, columns: Columns) -> tuple[Doubles, Doubles]:
    """Mean and variance of the bytes that a laser reports, as ``noise.noisy_byte`` makes them.

    Args:
        value: ``float64[n]``, reflectivities without noise, in bytes.
        noise: Standard deviation before they become bytes that the laser reports.
        columns: ``int32[512]``, the laser's part of ``LaserSignals.reported``.
    """
    byte = _reported(value, noise, columns)
    return byte.mean(axis=1), byte.var(axis=1)


def reported_sd(byte: float, noise: float, columns: Columns) -> float:
    """Standard deviation of a laser's bytes from firing to firing, as a mean (of squares) over surfaces near ``byte``.

    The surfaces lie evenly within 4 bytes of it, or as far as black is, and none within 4 of white, which limits what is reported. Where the noise is above a
    quarter of the step between bytes, this is nearly the root of ``noise**2 + step**2 / 12``; below, less.
    """
    byte = min(byte, _WHITE - _NEAR)
    extent = min(_NEAR, max(byte, 0.5))
    places = byte + extent * ((np.arange(_PLACES) + 0.5) / _PLACES * 2.0 - 1.0)
    return float(np.sqrt(reported_moments(places[places >= 0.0], noise, columns)[1].mean()))


@lru_cache(maxsize=4096)  # a lidar's plan is built again with each change
def _reported_sds(byte: float, columns: bytes) -> Doubles:
    """``reported_sd`` of each of ``_NOISES``."""
    laser = np.frombuffer(columns, np.int32)
    return np.array([max(reported_sd(byte, noise, laser), _MIN_SD * noise) for noise in _NOISES.tolist()])


def noise_before_steps(byte: float, sd: float, columns: Columns) -> float:
    """The noise of which ``reported_sd`` makes ``sd``."""
    return float(np.exp(np.interp(np.log(max(sd, _MIN_SD)), np.log(_reported_sds(byte, columns.tobytes())), np.log(_NOISES))))


def columns_of(edges: Curve, drawn: Columns) -> Columns:
    """A laser's part of ``LaserSignals.reported``, ``int32[512]``.

    Args:
        edges: ``LaserUnitSpec.byte_edges``.
        drawn: Part of a drawn laser, for all other reflectivities.
    """
    if not edges:
        return drawn
    byte, edge = np.array([(-1, 0.0), *edges]).T
    place = (np.arange(HALVES) + 0.5) / 2.0
    row = np.searchsorted(edge, place, side="right")
    is_known = (row > 0) & (row < edge.size)
    row = row.clip(1, edge.size - 1)
    is_known &= byte[row] == byte[row - 1] + 1
    return np.where(is_known, 2 * byte[row] + (place >= 0.5 * (edge[row - 1] + edge[row])), drawn).astype(np.int32)


def noise_through(curve: Curve, columns: Columns, line: Doubles) -> Doubles:
    """Noise of a laser by byte, ``float64[128]``, of whose reported bytes the standard deviation was measured at some bytes.

    Args:
        curve: Pairs of a rising byte and the standard deviation of the reported bytes there.
        columns: The laser's part of ``LaserSignals.reported``.
        line: ``float64[128]``, noise of the model by byte. The result is a multiple of it: between measured bytes linear, and beyond as at the last one.
    """
    byte = np.array([place for place, _ in curve])
    noise = np.array([noise_before_steps(place, sd, columns) for place, sd in curve])
    places = np.arange(NOISES) + 0.5
    of_line = np.maximum(line, _MIN_SD)
    return np.asarray(of_line * np.interp(places, byte, noise / np.interp(byte, places, of_line)))


def with_own_bytes(lasers: LaserSignals, line: Doubles, edges: Sequence[Curve], curves: Sequence[Curve], response: Curve = ()) -> LaserSignals:
    """Lasers with known bytes, noise of these and response to range in place of drawn ones.

    Args:
        lasers: Figures of the lasers.
        line: ``float64[128]``, noise of the model by byte.
        edges: ``LaserUnitSpec.byte_edges`` of each laser.
        curves: Pairs of a byte and the standard deviation of the reported bytes there, for each laser; none: not known.
        response: Pairs of a range and the ratio of reflectivities there; none: not known.
    """
    columns = [columns_of(of_laser, drawn) for of_laser, drawn in zip(edges, lasers.reported.reshape(-1, HALVES), strict=True)]
    noise = lasers.byte_noise.reshape(-1, NOISES).astype(np.float64)
    for number, curve in enumerate(curves):
        if curve:
            noise[number] = noise_through(curve, columns[number], line)
    range_gain = lasers.range_gain
    if response:
        middle_m = (np.arange(RANGES) + 0.5) / RANGES_PER_M
        range_gain = np.interp(middle_m, *np.array(response).T).astype(np.float32)[:, None]
    return lasers._replace(reported=np.concatenate(columns)[:, None], byte_noise=noise_columns(noise), range_gain=range_gain)
