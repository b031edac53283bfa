"""One unit of a lidar's model: its specification, its setup and the errors of its lasers."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from hilsim.emulator.setting import LidarSetting
from hilsim.rng import Purpose
from hilsim.sensor.response import laser_biases_m
from hilsim.sensor.setup import IDEAL, SensorSetup
from hilsim.sensor.specs import LidarSpec
from hilsim.sensor.unit.draws import UnitDraws
from hilsim.sensor.unit.spec import BYTES, LaserUnitSpec, UnitSpec
from hilsim.sensor.unit.spread import UnitSpread
from hilsim.sensor.unit.wander import StampWander, build_stamp_wander, no_stamp_wander
from hilsim.sensor.unit.warm_up import WarmUp, WarmUpSpec, build_warm_up

T = TypeVar("T")
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One unit.

    Attributes:
        spec: The model with the unit's encoder, oscillations and position packets. Directions of lasers are the model's, as decoders know them.
        setup: The setup with the unit's clock and start phase.
        bias_m: ``float64[c]``, constant range error of each laser in firing order.
        elevation_error_deg: ``float64[c]``, elevation of each true beam above the model's.
        azimuth_error_deg: ``float64[c]``, azimuth of each true beam beyond the model's.
        gain: ``float64[c]``, ratio of reflectivities to those without error.
        baseline: ``uint8[c]``, reflectivity byte of no return.
        baseline_ratio: ``float64[c]``, share of the firings without a return that have this byte; NaN: not known.
        empty_ratio: ``float64[c, 256]``, share of the firings without a return by byte, other than the baseline.
        range_codes: ``int64[c, 512]``, correction of the distance by half byte, in counts of the packet's unit.
        byte_noise: Standard deviation of the byte by byte, as ``UnitSpec.byte_noise``; empty: not known.
        byte_edges: ``LaserUnitSpec.byte_edges`` of each laser.
        laser_byte_noise: ``LaserUnitSpec.byte_noise`` of each laser.
        response: Ratio of reflectivities by range, as ``UnitSpec.response``; empty: not known.
        stamp_wander: Wander of the stamps.
        warm_up: Range error while the unit warms up.
    """

    spec: LidarSpec
    setup: SensorSetup
    bias_m: Doubles
    elevation_error_deg: Doubles
    azimuth_error_deg: Doubles
    gain: Doubles
    baseline: npt.NDArray[np.uint8]
    baseline_ratio: Doubles
    empty_ratio: Doubles
    range_codes: npt.NDArray[np.int64]
    byte_edges: tuple[tuple[tuple[int, float], ...], ...]
    laser_byte_noise: tuple[tuple[tuple[float, float], ...], ...]
    byte_noise: tuple[tuple[float, float], ...] = ()
    response: tuple[tuple[float, float], ...] = ()
    stamp_wander: StampWander = field(default_factory=no_stamp_wander)
    warm_up: WarmUp = field(default_factory=lambda: build_warm_up(WarmUpSpec(), 0.0))

    @property
    def has_own_bytes(self) -> bool:
        """Whether some laser's reflectivity has a gain, bytes or noise of its own."""
        return bool((self.gain != 1.0).any() or any(self.byte_edges) or any(self.laser_byte_noise) or self.byte_noise)


def unit_of(setting: LidarSetting, *, seed: int) -> Unit:
    """The unit that a lidar is: ideal, or learned and drawn from the rig's seed and the sensor's number."""
    spec, setup = setting.spec, setting.setup
    learned, spread = setting.unit, setting.family.spread
    if setup.unit == IDEAL:
        learned, spread = UnitSpec(), UnitSpread()
        # Without a unit's correction the grid alone would remain, on which no real unit's distances lie. Surfaces are as the scene says, without a relief.
        signal = replace(spec.signal, grid_codes=1, relief_ratio=0.0, ripple_m=0.0)
        spec = replace(spec, signal=signal, detector=replace(spec.detector, range_noise_overlap=0.0))
    draws = UnitDraws(seed, setting.stream)
    lasers = learned.laser or (LaserUnitSpec(),) * spec.laser_count
    bias = draws.laser_biases_m(spread, spec.laser_count) + laser_biases_m(spec, seed=seed, stream=setting.stream)
    spec, setup = setting.family.of_unit(spec, setup, learned, spread, draws)
    spec = replace(spec, signal=draws.signal(spread, spec.signal, learned))
    elevations_deg, azimuths_deg = draws.direction_errors_deg(spread, len(lasers))
    return Unit(
        spec=spec,
        setup=_with_clock(setup, learned, spread, draws),
        bias_m=_learned(lasers, lambda laser: laser.range_bias_m, bias),
        elevation_error_deg=_learned(lasers, lambda laser: laser.elevation_error_deg, elevations_deg),
        azimuth_error_deg=_learned(lasers, lambda laser: laser.azimuth_error_deg, azimuths_deg),
        gain=_learned(lasers, lambda laser: laser.reflectivity_gain, draws.gains(spread, len(lasers))),
        baseline=_learned(lasers, lambda laser: laser.baseline, draws.baselines(spread, spec.no_return_reflectivities)).astype(np.uint8),
        baseline_ratio=_learned(lasers, lambda laser: laser.baseline_ratio, np.full(len(lasers), math.nan)),
        empty_ratio=np.array([_by_byte(laser.empty_bytes) for laser in lasers]),
        range_codes=np.array([_range_codes(laser.range_codes, laser.straddled_bytes) for laser in lasers]),
        byte_edges=tuple(laser.byte_edges for laser in lasers),
        laser_byte_noise=tuple(laser.byte_noise for laser in lasers),
        byte_noise=learned.byte_noise,
        response=learned.response,
        stamp_wander=_stamp_wander(learned, spread, draws),
        warm_up=build_warm_up(setting.setup.warm_up, 0.0 if setting.setup.unit == IDEAL else draws.normal(0, Purpose.UNIT_WARM_UP)),
    )


def _learned(lasers: tuple[LaserUnitSpec, ...], value: Callable[[LaserUnitSpec], float | None], drawn: Doubles) -> Doubles:
    """Each laser's learned value, or the drawn one."""
    return np.array([otherwise if (known := value(laser)) is None else known for laser, otherwise in zip(lasers, drawn, strict=True)], np.float64)


def _by_byte(pairs: tuple[tuple[int, float], ...]) -> Doubles:
    shares = np.zeros(BYTES)
    for byte, share in pairs:
        shares[byte] += share
    return shares


def _range_codes(codes: tuple[int, ...], straddled: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Correction of each half byte; the last one for all beyond."""
    if not codes:
        return np.zeros(2 * BYTES, np.int64)
    halves = np.repeat(np.array([*codes, *[codes[-1]] * (BYTES - len(codes))], np.int64), 2)
    halves[2 * np.array(straddled, np.int64) + 1] ^= 1
    return halves


def _with_clock(setup: SensorSetup, learned: UnitSpec, spread: UnitSpread, draws: UnitDraws) -> SensorSetup:
    """The setup with the errors of the clock that the rig does not give."""
    clock = setup.clock
    oscillator_ppm = _first(clock.oscillator_ppm, learned.oscillator_ppm, draws.oscillator_ppm(spread))
    stamp_ppm = _first(clock.stamp_ppm, learned.stamp_ppm, draws.stamp_ppm(spread))
    return replace(setup, clock=replace(clock, oscillator_ppm=oscillator_ppm, stamp_ppm=stamp_ppm))


def _stamp_wander(learned: UnitSpec, spread: UnitSpread, draws: UnitDraws) -> StampWander:
    """Wander of the unit's stamps: as large as that of the known unit, with a course of its own."""
    wander_us = _first(learned.stamp_wander_us, spread.stamp_wander_us)
    return build_stamp_wander(wander_us, spread.stamp_wander_s, seed=draws.seed, stream=draws.stream)


def _first(*values: float | None) -> float:
    """The first value that is given."""
    return next(value for value in values if value is not None)
