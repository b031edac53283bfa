"""Physics of weather as numbers and tables: extinction, soft echo by range, detectable drops and flakes by range. NumPy, at start-up only.

Marks of confidence and sources as in ``weather.py``.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.errors import require

Floats = npt.NDArray[np.float64]

OVERLAP_FROM_M = 0.9
"""Range at which receiver and beam begin to overlap; overlap is full at 1 m [S FOG, SNOW]. For weather only: hard targets are seen from 0.5 m."""
_OVERLAP_FULL_M = 1.0
_LIGHT_M_PER_NS = 0.299792458
_OPTICAL_DEPTH = math.log(20.0)  # visibility at 5 % contrast [S FOG]; the 2 % convention would give 3.912
_BACKSCATTER = 0.046  # 1/sr, times 1 / visibility [S FOG, range 0.023 to 0.092]; lidar ratio 65 sr
_TABLE_STEP_M = 0.001
_ENTRIES = 129  # length of every table, so that one array holds them all
_NEGLECTED_TAIL = 1e-7  # share of particles beyond the end of their table
_MAX_PER_FIRING = 500.0  # mean number, above which inversion is too slow


class Particles(NamedTuple):
    """Drops or flakes that exceed the threshold singly, without their ranges.

    Attributes:
        mean: Mean number per firing, at all ranges.
        none_ratio: Probability of none, ``exp(-mean)``.
        reflectance: Reflectance of a particle that fills the beam.
        mean_excess_mm: Mean difference between the diameter and the least detectable one (diameters are distributed exponentially).
        step_m: Range step of the table of ``particle_table``.
    """

    mean: float
    none_ratio: float
    reflectance: float
    mean_excess_mm: float
    step_m: float


_NO_PARTICLES = (Particles(0.0, 1.0, 0.0, 0.0, 1.0), np.linspace(0.0, 1.0, _ENTRIES))


def drop_sizes(rain_mm_per_h: float) -> tuple[float, float]:
    """Drop sizes by Marshall and Palmer: number per m3 and mm at diameter 0, and decay of that number per mm of diameter; 0 without rain."""
    return (8000.0, 4.1 * math.pow(rain_mm_per_h, -0.21)) if rain_mm_per_h > 0.0 else (0.0, 1.0)


def flake_sizes(snow_mm_per_h: float) -> tuple[float, float]:
    """Flake sizes by Gunn and Marshall [S LISA], diameters as water; result as in ``drop_sizes``."""
    return (7.6e3 * math.pow(snow_mm_per_h, -0.87), 2.55 * math.pow(snow_mm_per_h, -0.48)) if snow_mm_per_h > 0.0 else (0.0, 1.0)


def _extinction_per_m(sizes: tuple[float, float]) -> float:
    """One-way extinction coefficient of particles with exponentially distributed diameters and an extinction efficiency of 2."""
    number, decay_per_mm = sizes
    return math.pi * number / decay_per_mm**3 * 1e-6


def rain_extinction_per_m(rain_mm_per_h: float, rain_model: str) -> float:
    """One-way extinction coefficient of rain.

    Marshall and Palmer's drops with an extinction efficiency of 2 give ``3.6466e-4 R^0.63`` [C], within 1 % of Mie theory at 905 nm. ``goodin`` is
    ``0.01 R^0.6`` [S BLA, LISA, both citing Goodin 2019].
    """
    if rain_model == "goodin":
        return 0.01 * math.pow(rain_mm_per_h, 0.6)
    return _extinction_per_m(drop_sizes(rain_mm_per_h))


def snow_extinction_per_m(snow_mm_per_h: float) -> float:
    """One-way extinction coefficient of snow: Gunn and Marshall's flakes [C]."""
    return _extinction_per_m(flake_sizes(snow_mm_per_h))


def visibility_extinction_per_m(visibility_m: float) -> float:
    """One-way extinction coefficient of fog or dust with a visibility; a visibility of 0 means none."""
    return _OPTICAL_DEPTH / visibility_m if visibility_m > 0.0 else 0.0


def soft_echo_energy(
    range_m: Floats, *, extinction_per_m: float, soft_extinction_per_m: float, pulse_ns: float, near_gain_m: float, hard_range_m: float = math.inf
) -> Floats:
    """Energy that a soft target returns for a rectangular pulse, by range.

    ``pi beta * integral of xi(r') exp(-2 alpha r') / r'^2`` over half a pulse length on either side, up to the hard hit [S FOG, in the units of this
    module], times the near gain [R].

    Args:
        range_m: Ranges in metres, any shape.
        extinction_per_m: Extinction coefficient of all weather.
        soft_extinction_per_m: Extinction coefficient of fog and dust; ``beta`` is this times 0.046 / ln 20.
        pulse_ns: Duration of the pulse.
        near_gain_m: ``WeatherSpec.near_gain_m``.
        hard_range_m: Nearest hard hit.
    """
    half_m = _LIGHT_M_PER_NS * pulse_ns / 4.0
    at, upto = _density_integral(float(np.max(range_m)) + half_m, extinction_per_m)
    inside = np.interp(np.minimum(range_m + half_m, hard_range_m), at, upto) - np.interp(np.minimum(range_m - half_m, hard_range_m), at, upto)
    return _soft_energy(inside, range_m, soft_extinction_per_m, near_gain_m)


def _density_integral(stop_m: float, extinction_per_m: float) -> tuple[Floats, Floats]:
    """Ranges up to one beyond ``stop_m``, and the integral of the echo's density up to each of them; an entry does not depend on ``stop_m``."""
    at = np.arange(OVERLAP_FROM_M, stop_m + _TABLE_STEP_M, _TABLE_STEP_M)
    overlap = np.clip((at - OVERLAP_FROM_M) / (_OVERLAP_FULL_M - OVERLAP_FROM_M), 0.0, 1.0)
    density = overlap * np.exp(-2.0 * extinction_per_m * at) / at**2
    return at, np.concatenate(([0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * _TABLE_STEP_M)))


def _soft_energy(inside: Floats, range_m: Floats, soft_extinction_per_m: float, near_gain_m: float) -> Floats:
    """Energy of the soft echo at ranges, of the density's integral within the pulse there."""
    gain = np.minimum(1.0, (range_m / near_gain_m) ** 2) if near_gain_m > 0.0 else 1.0
    energy: Floats = math.pi * soft_extinction_per_m * (_BACKSCATTER / _OPTICAL_DEPTH) * inside * gain
    return energy


def soft_table(extinction_per_m: float, soft_extinction_per_m: float, pulse_ns: float, near_gain_m: float) -> tuple[float, Floats, Floats]:
    """Peak of the soft echo by range of the nearest hard hit, which is ``0.9 m + k * step``; at and beyond the last the echo is not clipped.

    Returns:
        Step (m); ``float64[129]`` energy; ``float64[129]`` range (m).
    """
    if soft_extinction_per_m == 0.0:
        return 1.0, np.zeros(_ENTRIES), np.zeros(_ENTRIES)
    half_m = _LIGHT_M_PER_NS * pulse_ns / 4.0
    at = np.arange(
        OVERLAP_FROM_M, max(near_gain_m, _OVERLAP_FULL_M + half_m) + _TABLE_STEP_M, _TABLE_STEP_M
    )  # beyond this range the energy only falls

    grid_m, upto = _density_integral(float(at[-1]) + half_m, extinction_per_m)

    def peaks(hard_range_m: Floats) -> tuple[Floats, Floats]:
        """Energy and range of the peak of the echo that each hard hit clips."""
        near_m, hard_m = at[at <= hard_range_m.max()], hard_range_m[:, np.newaxis]
        stop_m, begin_m, clipped = near_m + half_m, near_m - half_m, np.interp(hard_m, grid_m, upto)
        inside = np.where(stop_m < hard_m, np.interp(stop_m, grid_m, upto), clipped) - np.where(
            begin_m < hard_m, np.interp(begin_m, grid_m, upto), clipped
        )
        energy = _soft_energy(inside, near_m, soft_extinction_per_m, near_gain_m)
        energy[near_m > hard_m] = -np.inf
        most = energy.max(axis=1, keepdims=True)
        index = np.argmax(energy >= most * (1.0 - 1e-9), axis=1)  # the nearest: a clipped pulse has the same energy at many ranges
        return energy[np.arange(len(index)), index], near_m[index]

    _, open_range_m = peaks(np.array([math.inf]))
    hard_range_m = np.linspace(OVERLAP_FROM_M, float(open_range_m[0]) + half_m, _ENTRIES)
    return float(hard_range_m[1] - hard_range_m[0]), *peaks(hard_range_m)


def particle_table(
    sizes: tuple[float, float],
    reflectance: float,
    *,
    threshold_energy: float,
    extinction_per_m: float,
    near_gain_m: float,
    spot_mm: tuple[float, float],
    divergence_mrad: tuple[float, float],
) -> tuple[Particles, Floats]:
    """Drops or flakes that exceed the threshold singly, and ``float64[129]``, the share of them nearer than ``0.9 m + k * step_m``; the last is 1.

    A particle in the beam returns the share of the beam's section that it covers [S LISA], so the least detectable diameter grows with range. The density along
    the beam is the beam's section times the number of particles above that diameter, from 0.9 m on, at full overlap.

    Args:
        sizes: Result of ``drop_sizes`` or ``flake_sizes``.
        reflectance: Reflectance of a particle that fills the beam.
        threshold_energy: Detection threshold, above 0 where there are particles.
        extinction_per_m: Extinction coefficient of all weather.
        near_gain_m: ``WeatherSpec.near_gain_m``.
        spot_mm: Width and height of the beam at the window.
        divergence_mrad: Horizontal and vertical divergence, full angles.
    """
    number, decay_per_mm = sizes
    if number == 0.0:
        return _NO_PARTICLES
    farthest_m = (
        max(math.sqrt(reflectance / threshold_energy), OVERLAP_FROM_M) + 1.0
    )  # no particle is detected beyond this range, even without extinction
    at = np.linspace(OVERLAP_FROM_M, farthest_m, 40_001)
    filled = reflectance * np.exp(-2.0 * extinction_per_m * at) / at**2
    if near_gain_m > 0.0:
        filled *= np.minimum(1.0, (at / near_gain_m) ** 2)
    section_mm2 = (spot_mm[0] + divergence_mrad[0] * at) * (spot_mm[1] + divergence_mrad[1] * at)
    seen = filled >= threshold_energy
    least_mm = np.sqrt(threshold_energy * section_mm2[seen] / filled[seen])
    density = np.zeros_like(at)
    density[seen] = math.pi / 4.0 * section_mm2[seen] * 1e-6 * number / decay_per_mm * np.exp(-decay_per_mm * least_mm)
    upto = np.concatenate(([0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * (at[1] - at[0]))))
    mean = float(upto[-1])
    require((mean <= _MAX_PER_FIRING, f"drops or flakes above threshold_energy must be at most {_MAX_PER_FIRING:g} a firing, got {mean:g}"))
    if mean == 0.0:
        return _NO_PARTICLES
    end_m = float(at[np.searchsorted(upto, mean * (1.0 - _NEGLECTED_TAIL))])
    cells = np.linspace(OVERLAP_FROM_M, end_m, _ENTRIES)
    share = np.interp(cells, at, upto) / mean
    share[-1] = 1.0
    return Particles(mean, math.exp(-mean), reflectance, 1.0 / decay_per_mm, float(cells[1] - cells[0])), share
