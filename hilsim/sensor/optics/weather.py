"""Weather: attenuation of a beam by fog, rain, snow and dust, and their echoes near the sensor.

Energies are normalised: a white Lambertian wall at 1 m, normal incidence, clear air, returns 1. Extinction coefficients add up. Fog and dust are a *soft
target*, one echo per firing; drops and flakes are simulated one by one where a single one exceeds the detection threshold. ``build_weather`` computes
the tables once; the kernels look up and draw by counter, so an echo depends on (seed, stream, sequence) only.

Marks of confidence. [S]: read in the named source; [C]: computed from the formula; [K]: general knowledge, source named but not read again; [R]: recommended
here, unproven by any source. Sources: [FOG] Hahner et al., Fog simulation on real lidar point clouds, ICCV 2021; [SNOW] Hahner et al., LiDAR snowfall
simulation, CVPR 2022 (published physics only); [LISA] Kilic et al., arXiv 2107.07004, ``atmos_models.py``; [BLA] Blainder range scanner;
[PRA] Pierce et al., SPIE 4530 (2001), abstract; [FIL] Filgueira et al., Measurement 2017, abstract. No calibration of a Velodyne in fog or snow was found.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, stage_kernel
from hilsim.errors import require, within
from hilsim.rng import Purpose, uniform, uniform_pair
from hilsim.sensor.optics.weather_tables import (
    OVERLAP_FROM_M,
    Particles,
    drop_sizes,
    flake_sizes,
    particle_table,
    rain_extinction_per_m,
    snow_extinction_per_m,
    soft_table,
    visibility_extinction_per_m,
)

_COUNT = constant(Purpose.WEATHER_COUNT)
_SOFT_RANGE = constant(Purpose.SOFT_ECHO_RANGE)
_SOFT_ENERGY = constant(Purpose.SOFT_ECHO_ENERGY)
_DROP = constant(Purpose.RAIN_DROP)
_FLAKE = constant(Purpose.SNOW_FLAKE)

_SOFT_ENERGIES, _SOFT_RANGES = 0, 1  # rows of Weather.table
_DROPS, _FLAKES = constant(2), constant(3)

_DROP_REFLECTANCE = ((1.328 - 1.0) / (1.328 + 1.0)) ** 2  # Fresnel, water [S LISA]: 0.01985
_SCATTER_M = 10.0  # range scatter of a soft echo is this times Beta(2, 20) [S FOG]
_PARTICLES_PER_FIRING = 65_536  # random numbers reserved for each firing


@dataclass(frozen=True, kw_only=True)
class WeatherSpec:
    """The weather; several kinds together add up. The default is clear air.

    Attributes:
        fog_visibility_m: Meteorological optical range (5 % contrast) of fog, 1 to 100000; 0: no fog. Dense 20-50, thick 50-200, moderate 200-500, light 500-1000.
            Independent of wavelength, which holds well for fog [PRA].
        rain_mm_per_h: Rain rate, 0 to 500; light 2.5, moderate 10, heavy 25, violent 50.
        rain_model: ``marshall_palmer`` [R]: extinction from the drop sizes, of the magnitude of measured optical links (ITU-R P.1814 [K]) and of stable ranges
            in real rain [FIL]; ``goodin`` [S BLA, LISA]: ``0.01 R^0.6``, 25 times as much.
        snow_mm_per_h: Snow rate as water equivalent, 0 to 50; light 0.5, heavy 2.5.
        dust_visibility_m: Visibility in dust, with the values of ``fog_visibility_m``; dust is simulated like fog [R].
        near_gain_m: Range below which the energy of weather echoes is multiplied by (range / near_gain_m)^2; 0 to 50, 0 for full sensitivity. 3 m is
            recommended [R]: unproven, to be
            fitted to a real unit.
        flake_reflectivity: Reflectivity of a snow flake as a diffuse disc, above 0 to 1. 0.9 [S SNOW] is an upper bound; a lower value makes fewer echoes.
    """

    fog_visibility_m: float = 0.0
    rain_mm_per_h: float = 0.0
    rain_model: Literal["marshall_palmer", "goodin"] = "marshall_palmer"
    snow_mm_per_h: float = 0.0
    dust_visibility_m: float = 0.0
    near_gain_m: float = 3.0
    flake_reflectivity: float = 0.9

    def __post_init__(self) -> None:
        require(
            *within(self, rain_mm_per_h=(0, 500), snow_mm_per_h=(0, 50), near_gain_m=(0, 50)),
            (
                self.fog_visibility_m == 0.0 or 1.0 <= self.fog_visibility_m <= 1e5,
                f"fog_visibility_m must be 1 to 100000, or 0 for no fog, got {self.fog_visibility_m}",
            ),
            (self.rain_model in {"marshall_palmer", "goodin"}, f"rain_model must be marshall_palmer or goodin, got {self.rain_model}"),
            (
                self.dust_visibility_m == 0.0 or 1.0 <= self.dust_visibility_m <= 1e5,
                f"dust_visibility_m must be 1 to 100000, or 0 for no dust, got {self.dust_visibility_m}",
            ),
            (0.0 < self.flake_reflectivity <= 1.0, f"flake_reflectivity must be above 0 and at most 1, got {self.flake_reflectivity}"),
        )


class Weather(NamedTuple):
    """Kernel-side weather, built by ``build_weather``.

    Attributes:
        has_echoes: Whether the weather makes echoes.
        has_soft_echo: Whether there is fog or dust.
        extinction_per_m: Total extinction coefficient, one way.
        threshold_energy: Detection threshold.
        near_gain_m: ``WeatherSpec.near_gain_m``.
        spot_h_mm: Width of the beam at the window.
        spot_v_mm: Height of the beam at the window.
        divergence_h_mrad: Horizontal divergence, full angle.
        divergence_v_mrad: Vertical divergence, full angle.
        soft_step_m: Range step of the first two rows of ``table``.
        rain: Detectable drops.
        snow: Detectable flakes.
        table: ``float64[4, 129]``. Mean energy of the soft echo where the nearest hard hit is at ``0.9 m + k * soft_step_m`` (constant beyond the last);
            its range (m); share of the drops nearer than ``0.9 m + k * rain.step_m``; the same for flakes. One array, because each argument costs a kernel's call 6 ns.
    """

    has_echoes: bool
    has_soft_echo: bool
    extinction_per_m: float
    threshold_energy: float
    near_gain_m: float
    spot_h_mm: float
    spot_v_mm: float
    divergence_h_mrad: float
    divergence_v_mrad: float
    soft_step_m: float
    rain: Particles
    snow: Particles
    table: npt.NDArray[np.float64]


@lru_cache(maxsize=64)
def build_weather(
    spec: WeatherSpec,
    *,
    threshold_energy: float,
    pulse_ns: float,
    divergence_h_mrad: float,
    divergence_v_mrad: float,
    window_h_mm: float,
    window_v_mm: float,
) -> Weather:
    """Build the kernel-side weather of a sensor, once for all sensors that have the same: it takes milliseconds, and kernels do not write to it.

    Args:
        spec: The weather.
        threshold_energy: Detection threshold; drops and flakes below it are not simulated. Above 0 where it rains or snows.
        pulse_ns: Duration of the pulse.
        divergence_h_mrad: Horizontal divergence of the visible spot, full angle.
        divergence_v_mrad: Vertical divergence of the visible spot, full angle.
        window_h_mm: Width of the spot at the window.
        window_v_mm: Height of the spot at the window.

    Raises:
        ValueError: it rains or snows, and the threshold is 0 or so low that hundreds of particles exceed it.
    """
    require(
        (0.0 <= threshold_energy < 1.0, f"threshold_energy must be 0 to less than 1, got {threshold_energy}"),
        (
            threshold_energy > 0.0 or spec.rain_mm_per_h == spec.snow_mm_per_h == 0.0,
            "threshold_energy must be above 0 where it rains or snows (without a threshold every drop makes an echo), got 0",
        ),
    )
    soft_extinction_per_m = visibility_extinction_per_m(spec.fog_visibility_m) + visibility_extinction_per_m(spec.dust_visibility_m)
    extinction_per_m = soft_extinction_per_m + rain_extinction_per_m(spec.rain_mm_per_h, spec.rain_model) + snow_extinction_per_m(spec.snow_mm_per_h)
    near_gain_m = float(spec.near_gain_m)
    soft_step_m, soft_energy, soft_range_m = soft_table(extinction_per_m, soft_extinction_per_m, pulse_ns, near_gain_m)

    def seen(sizes: tuple[float, float], reflectance: float) -> tuple[Particles, npt.NDArray[np.float64]]:
        return particle_table(
            sizes,
            reflectance,
            threshold_energy=threshold_energy,
            extinction_per_m=extinction_per_m,
            near_gain_m=near_gain_m,
            spot_mm=(window_h_mm, window_v_mm),
            divergence_mrad=(divergence_h_mrad, divergence_v_mrad),
        )

    rain, share_of_drops = seen(drop_sizes(spec.rain_mm_per_h), _DROP_REFLECTANCE)
    snow, share_of_flakes = seen(flake_sizes(spec.snow_mm_per_h), spec.flake_reflectivity)
    has_soft_echo = soft_extinction_per_m > 0.0
    return Weather(
        has_echoes=has_soft_echo or rain.mean > 0.0 or snow.mean > 0.0,
        has_soft_echo=has_soft_echo,
        extinction_per_m=extinction_per_m,
        threshold_energy=float(threshold_energy),
        near_gain_m=near_gain_m,
        spot_h_mm=float(window_h_mm),
        spot_v_mm=float(window_v_mm),
        divergence_h_mrad=float(divergence_h_mrad),
        divergence_v_mrad=float(divergence_v_mrad),
        soft_step_m=soft_step_m,
        rain=rain,
        snow=snow,
        table=np.array([soft_energy, soft_range_m, share_of_drops, share_of_flakes]),
    )


@kernel
def extinction(weather: Weather, range_m: float) -> float:
    """Share of the energy left after the path to ``range_m`` and back, 0 to 1."""
    if weather.extinction_per_m == 0.0:
        return 1.0
    return math.exp(-2.0 * weather.extinction_per_m * range_m)


@kernel
def _soft_echo(weather: Weather, seed: int | np.uint64, stream: int, sequence: int, hard_range_m: float) -> tuple[float, float]:
    """Range (m) and energy of the echo of fog and dust: the peak before the hard hit, with random range and exponentially distributed energy (speckle) [R]."""
    entry = (hard_range_m - OVERLAP_FROM_M) / weather.soft_step_m
    last = weather.table.shape[1] - 1
    if entry <= 0.0:
        return np.inf, 0.0
    peak = weather.table[_SOFT_ENERGIES, last]
    peak_m = weather.table[_SOFT_RANGES, last]
    if entry < last:
        below = int(entry)
        rest = entry - below
        peak = (1.0 - rest) * weather.table[_SOFT_ENERGIES, below] + rest * weather.table[_SOFT_ENERGIES, below + 1]
        peak_m = (1.0 - rest) * weather.table[_SOFT_RANGES, below] + rest * weather.table[_SOFT_RANGES, below + 1]
    a, b = uniform_pair(seed, stream, sequence, _SOFT_RANGE)
    # Beta(2, 20) is the second smallest of 21 uniform numbers, hence one minus this product (Renyi).
    scatter_m = _SCATTER_M * (1.0 - math.exp(math.log(1.0 - a) / 21.0 + math.log(1.0 - b) / 20.0))
    return peak_m + scatter_m, -peak * math.log(1.0 - uniform(seed, stream, sequence, _SOFT_ENERGY))


@kernel
def _poisson(mean: float, none_ratio: float, draw: float) -> int:
    """Poisson number by inversion of a uniform random number; ``most`` is reached by rounding only."""
    number = 0
    term = none_ratio
    upto = term
    most = 40.0 + 2.0 * mean
    while draw >= upto and number < most:
        number += 1
        term *= mean / number
        upto += term
    return number


@kernel
def _particle_range_m(table: npt.NDArray[np.float64], row: int, step_m: float, draw: float) -> float:
    """Range of a particle by inversion of a uniform random number: bisection, then linear within the table's step."""
    low = 0
    high = table.shape[1] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if table[row, middle] <= draw:
            low = middle
        else:
            high = middle
    inside = (draw - table[row, low]) / (table[row, high] - table[row, low])
    return float(OVERLAP_FROM_M + (low + inside) * step_m)


@kernel
def _particle_echoes(
    weather: Weather,
    particles: Particles,
    row: int,
    number: int,
    purpose: int,
    seed: int | np.uint64,
    stream: int,
    sequence: int,
    hard_range_m: float,
    range_m: npt.NDArray[Any],
    energy: npt.NDArray[Any],
    start: int,
) -> int:
    """Append ``number`` drops or flakes except those beyond the hard hit; each energy is at least the threshold and at most that of a filled beam."""
    count = start
    for particle in range(number):
        if count >= range_m.size:
            break
        draw, excess = uniform_pair(seed, stream, sequence * _PARTICLES_PER_FIRING + particle, purpose)
        at = _particle_range_m(weather.table, row, particles.step_m, draw)
        if np.float32(at) >= hard_range_m:
            continue
        filled = particles.reflectance * math.exp(-2.0 * weather.extinction_per_m * at) / (at * at)
        if at < weather.near_gain_m:
            filled *= (at / weather.near_gain_m) ** 2
        section_mm2 = (weather.spot_h_mm + weather.divergence_h_mrad * at) * (weather.spot_v_mm + weather.divergence_v_mrad * at)
        least_mm = math.sqrt(weather.threshold_energy / filled * section_mm2)
        diameters = 1.0 - particles.mean_excess_mm * math.log(1.0 - excess) / least_mm
        range_m[count] = at
        energy[count] = min(filled, weather.threshold_energy * diameters * diameters)
        count += 1
    return count


@stage_kernel
def weather_echoes(
    weather: Weather,
    seed: int | np.uint64,
    stream: int,
    sequence: int,
    hard_range_m: float,
    range_m: npt.NDArray[Any],
    energy: npt.NDArray[Any],
    start: int,
) -> int:
    """Append the echoes of the weather in one firing, unsorted and unmerged, all before the hard hit.

    Energies include extinction and near gain; the caller applies the window's transmission. Drops and flakes are at or above the threshold;
    the echo of fog and dust has any energy. Echoes beyond the arrays' capacity are dropped. Check ``weather.has_echoes`` first: it saves the call, 20 ns.

    Args:
        weather: The weather.
        seed: Random seed of the rig.
        stream: Random stream of the channel.
        sequence: Index of the firing sequence, 0 to 2^47.
        hard_range_m: Nearest hard hit, ``inf`` for none.
        range_m: ``float32[M]``, written from ``start`` on.
        energy: ``float32[M]``, written from ``start`` on.
        start: Number of candidates already in the arrays.

    Returns:
        Number of candidates after the call, at most M.
    """
    count = start
    if weather.has_soft_echo and count < range_m.size:
        at, soft = _soft_echo(weather, seed, stream, sequence, hard_range_m)
        if np.float32(at) < hard_range_m:
            range_m[count] = at
            energy[count] = soft
            count += 1
    if weather.rain.mean > 0.0 or weather.snow.mean > 0.0:
        of_drops, of_flakes = uniform_pair(seed, stream, sequence, _COUNT)
        drops = _poisson(weather.rain.mean, weather.rain.none_ratio, of_drops)
        if drops > 0:
            count = _particle_echoes(weather, weather.rain, _DROPS, drops, _DROP, seed, stream, sequence, hard_range_m, range_m, energy, count)
        flakes = _poisson(weather.snow.mean, weather.snow.none_ratio, of_flakes)
        if flakes > 0:
            count = _particle_echoes(weather, weather.snow, _FLAKES, flakes, _FLAKE, seed, stream, sequence, hard_range_m, range_m, energy, count)
    return count
