"""Wind: a mean, and gusts by Dryden's model that the mean wind carries past the vehicle.

Spectra, scale lengths and intensities of MIL-F-8785C (1980), section 3.7, low-altitude model: with h in feet, ``L_w = h``, ``L_u = L_v = h / (0.177 +
0.000823 h)^1.2``, ``sigma_w = 0.1 W``, ``sigma_u = sigma_v = sigma_w / (0.177 + 0.000823 h)^0.4``. The gust field is frozen and moves at the mean wind's
speed; the vehicle's own speed is ignored. Along the wind gusts are a first-order process, across and upwards ``(1 + sqrt(3) T s) / (1 + T s)^2`` of
white noise. Both are exact at keys 20 ms apart and linear between, for any step of the vehicle; the noise of a key is a function of its
number, so a run is repeatable from its beginning.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.errors import require, within
from hilsim.rng import Purpose, normal_pair
from hilsim.world.geometry.frames import Vector

_GUST = constant(Purpose.GUST)
_FEET_PER_M = 1.0 / 0.3048
_KEY_NS = 20_000_000
_MIN_MPS = 0.5
_STATIONARY = np.linalg.cholesky(np.array([[1.0, 0.5], [0.5, 0.5]]))
"""Root of the stationary covariance of a second-order process's two parts."""


@dataclass(frozen=True, kw_only=True)
class WindSpec:
    """Wind at the place of flight.

    Attributes:
        speed_mps: Mean speed; 0 to 60.
        from_deg: Direction that the wind comes from, clockwise from north; 0 to 360.
        up_mps: Mean vertical speed of the air; -20 to 20.
        turbulence_ratio: Ratio of the standard deviation of vertical gusts to the mean speed: 0.1 in MIL-F-8785C, 0: no gusts. At most 0.5.
        height_m: Height above ground for which gusts are computed; 3 to 300.
    """

    speed_mps: float = 0.0
    from_deg: float = 0.0
    up_mps: float = 0.0
    turbulence_ratio: float = 0.0
    height_m: float = 10.0

    def __post_init__(self) -> None:
        require(
            *within(self, speed_mps=(0, 60), from_deg=(0, 360), up_mps=(-20, 20), turbulence_ratio=(0, 0.5), height_m=(3, 300)),
            (
                self.turbulence_ratio == 0.0 or self.speed_mps >= _MIN_MPS,
                f"speed_mps must be at least {_MIN_MPS} for gusts (the mean carries them past), got {self.speed_mps}",
            ),
        )

    @property
    def gust_scales(self) -> tuple[float, float, float, float]:
        """Standard deviations (m/s) of horizontal and vertical gusts, and their scale lengths (m)."""
        height_ft = self.height_m * _FEET_PER_M
        base = 0.177 + 0.000823 * height_ft
        vertical_mps = self.turbulence_ratio * self.speed_mps
        return vertical_mps / base**0.4, vertical_mps, height_ft / base**1.2 / _FEET_PER_M, self.height_m


class Wind(NamedTuple):
    """A wind for kernels; build with ``build_wind``.

    Attributes:
        seed: Random seed of the rig.
        stream: Number of the vehicle in the rig.
        mean_mps: Mean velocity in the world.
        along: East and north components of the unit vector that the wind blows along.
        gusts: Whether there are gusts.
        deviation_mps: ``float64[3]``, standard deviation along, across and up.
        keep: ``float64[3]``, decay of a process from one key to the next.
        noise: ``float64[3, 3]``, weights of each process's noise, lower triangle of a 2 x 2 matrix (first-order: one).
        crossing: ``float64[3]``, coupling from a process's first part to its second.
    """

    seed: np.uint64
    stream: int
    mean_mps: Vector
    along: tuple[float, float]
    gusts: bool
    deviation_mps: npt.NDArray[np.float64]
    keep: npt.NDArray[np.float64]
    noise: npt.NDArray[np.float64]
    crossing: npt.NDArray[np.float64]


class WindState(NamedTuple):
    """Gusts at the keys before and after a time; arrays, written by ``wind_at``. Made by ``wind_from``.

    Attributes:
        key: ``int64[1]``, number of the earlier key.
        part: ``float64[2, 3, 2]`` by key, process, and part of the process.
    """

    key: npt.NDArray[np.int64]
    part: npt.NDArray[np.float64]


def build_wind(spec: WindSpec, seed: int, stream: int) -> Wind:
    """Build the wind of ``spec`` for vehicle number ``stream`` of a rig with ``seed``."""
    level_mps, vertical_mps, level_m, vertical_m = spec.gust_scales
    blows_rad = math.radians(spec.from_deg + 180.0)
    east, north = math.sin(blows_rad), math.cos(blows_rad)
    keep, noise, crossing = np.zeros(3), np.zeros((3, 3)), np.zeros(3)
    for process, length_m in enumerate((level_m, level_m, vertical_m)):
        passed = _KEY_NS * 1e-9 * max(spec.speed_mps, _MIN_MPS) / length_m
        keep[process] = math.exp(-passed)
        if process == 0:
            noise[process, 0] = math.sqrt(1.0 - keep[process] ** 2)
        else:
            crossing[process] = passed
            noise[process] = _second_order_noise(passed)
    return Wind(
        np.uint64(seed),
        int(stream),
        (spec.speed_mps * east, spec.speed_mps * north, float(spec.up_mps)),
        (east, north),
        spec.turbulence_ratio > 0.0,
        np.array([level_mps, level_mps, vertical_mps]),
        keep,
        noise,
        crossing,
    )


def _second_order_noise(passed: float) -> npt.NDArray[np.float64]:
    """Root of the covariance that white noise adds to ``x' = -x + w``, ``y' = x - y`` over a time of ``passed``; x has variance 1."""
    step = math.exp(-passed) * np.array([[1.0, 0.0], [passed, 1.0]])
    stationary = _STATIONARY @ _STATIONARY.T
    root = np.linalg.cholesky(stationary - step @ stationary @ step.T)
    return np.array([root[0, 0], root[1, 0], root[1, 1]])


def wind_from(wind: Wind, time_ns: int) -> WindState:
    """Gusts in the stationary state at ``time_ns``."""
    state = WindState(np.array([time_ns // _KEY_NS], dtype=np.int64), np.zeros((2, 3, 2)))
    _begin(wind, state)
    return state


@kernel
def begin_gusts(wind: Wind, state: WindState, time_ns: int) -> None:
    """Put gusts into the stationary state at ``time_ns``, as ``wind_from``."""
    state.key[0] = time_ns // _KEY_NS
    _begin(wind, state)


@kernel
def _begin(wind: Wind, state: WindState) -> None:
    for process in range(3):
        a, b = normal_pair(wind.seed, wind.stream, _index(state.key[0], process), _GUST)
        state.part[0, process, 0] = a
        state.part[0, process, 1] = 0.5 * a + 0.5 * b
        _follow(wind, state, process)


@kernel
def _index(key: int, process: int) -> int:
    return 4 * (key + (1 << 40)) + process  # draws are numbered from 0; keys before rig time 0 need numbers as well


@kernel
def _follow(wind: Wind, state: WindState, process: int) -> None:
    """Compute a process at the later key from the earlier one."""
    a, b = normal_pair(wind.seed, wind.stream, _index(state.key[0] + 1, process), _GUST)
    x, y = state.part[0, process]
    keep = wind.keep[process]
    state.part[1, process, 0] = keep * x + wind.noise[process, 0] * a
    state.part[1, process, 1] = keep * (y + wind.crossing[process] * x) + wind.noise[process, 1] * a + wind.noise[process, 2] * b


@kernel
def _gust(state: WindState, moment: int, process: int) -> float:
    """Gust of unit variance: ``(1 + sqrt(3) T s) / (1 + T s)^2`` is ``sqrt(3) / (1 + T s) + (1 - sqrt(3)) / (1 + T s)^2``."""
    x: float = state.part[moment, process, 0]
    y: float = state.part[moment, process, 1]
    if process == 0:
        return x
    return math.sqrt(0.5) * (math.sqrt(3.0) * x + (1.0 - math.sqrt(3.0)) * y)


@kernel
def wind_at(wind: Wind, state: WindState, time_ns: int) -> Vector:
    """Velocity of the air in the world at rig time ``time_ns``, which must not be before the key of ``state``; advances ``state``."""
    x, y, z = wind.mean_mps
    if not wind.gusts:
        return x, y, z
    while state.key[0] < time_ns // _KEY_NS:
        state.key[0] += 1
        state.part[0] = state.part[1]
        for process in range(3):
            _follow(wind, state, process)
    s = (time_ns - state.key[0] * _KEY_NS) / _KEY_NS
    along = wind.deviation_mps[0] * ((1.0 - s) * _gust(state, 0, 0) + s * _gust(state, 1, 0))
    across = wind.deviation_mps[1] * ((1.0 - s) * _gust(state, 0, 1) + s * _gust(state, 1, 1))
    up = wind.deviation_mps[2] * ((1.0 - s) * _gust(state, 0, 2) + s * _gust(state, 1, 2))
    east, north = wind.along
    return x + along * east - across * north, y + along * north + across * east, z + up
