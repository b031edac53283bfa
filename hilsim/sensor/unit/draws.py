"""Random numbers of one unit: each depends on the rig's seed, the sensor's number and what it is for, so that four sensors of a rig are four units."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.rng import Purpose, normal, uniform
from hilsim.sensor.response import CHANNELS_PER_STREAM
from hilsim.sensor.signal.spec import SignalSpec
from hilsim.sensor.unit.spec import UnitSpec
from hilsim.sensor.unit.spread import UnitSpread

Doubles = npt.NDArray[np.float64]
_OF_UNIT = 2
"""Number of a unit's draw for a purpose that has draws of its lasers too."""
_RIPPLE_RATIO = (0.67, 1.33)


class UnitDraws(NamedTuple):
    """Draws of the unit that a sensor is.

    Attributes:
        seed: Random seed of the rig.
        stream: The sensor's number.
    """

    seed: int
    stream: int

    def uniform(self, index: int, purpose: Purpose) -> float:
        """A number of 0 to 1."""
        return float(uniform(np.uint64(self.seed), self.stream * CHANNELS_PER_STREAM, index, int(purpose)))

    def normal(self, index: int, purpose: Purpose) -> float:
        """A standard normal number."""
        return float(normal(np.uint64(self.seed), self.stream * CHANNELS_PER_STREAM, index, int(purpose)))

    def of_lasers(self, lasers: int, index: int, purpose: Purpose) -> Doubles:
        """A standard normal number of each laser, ``float64[c]``."""
        streams = range(self.stream * CHANNELS_PER_STREAM, self.stream * CHANNELS_PER_STREAM + lasers)
        return np.array([normal(np.uint64(self.seed), stream, index, int(purpose)) for stream in streams])

    def logarithmic(self, limits: tuple[float, float], index: int, purpose: Purpose) -> float:
        """A number between two limits, evenly on a logarithmic scale; 0 where they are 0."""
        low, high = limits
        return low * (high / low) ** self.uniform(index, purpose) if high > 0.0 else 0.0

    def laser_biases_m(self, spread: UnitSpread, lasers: int) -> Doubles:
        """Constant range error of each laser."""
        if spread.laser_bias_m[1] == 0.0:
            return np.zeros(lasers)
        sd_m = self.logarithmic(spread.laser_bias_m, _OF_UNIT, Purpose.UNIT_BIAS)
        return sd_m * self.of_lasers(lasers, 0, Purpose.UNIT_BIAS)

    def direction_errors_deg(self, spread: UnitSpread, lasers: int) -> tuple[Doubles, Doubles]:
        """Elevation of each beam above the model's, and its azimuth beyond the model's."""
        sds = enumerate((spread.elevation_error_deg, spread.azimuth_error_deg))
        elevations_deg, azimuths_deg = (self._scaled(sd, lasers, index, Purpose.UNIT_DIRECTION) for index, sd in sds)
        return elevations_deg, azimuths_deg

    def gains(self, spread: UnitSpread, lasers: int) -> Doubles:
        """Gain of each laser's reflectivity."""
        return np.exp(self._scaled(spread.gain_ratio, lasers, 0, Purpose.UNIT_GAIN))

    def _scaled(self, sd: float, lasers: int, index: int, purpose: Purpose) -> Doubles:
        return sd * self.of_lasers(lasers, index, purpose) if sd > 0.0 else np.zeros(lasers)

    def baselines(self, spread: UnitSpread, of_model: tuple[int, ...]) -> Doubles:
        """Reflectivity byte of no return of each laser; the model's where no unit is known."""
        if not spread.baselines:
            return np.array(of_model, np.float64)
        known = [np.log(np.array(unit, np.float64)) for unit in spread.baselines]
        levels = [float(np.median(unit)) for unit in known]
        sd = math.sqrt(float(np.mean([np.var(unit) for unit in known])))
        level = min(levels) + (max(levels) - min(levels)) * self.uniform(_OF_UNIT, Purpose.UNIT_BASELINE)
        drawn = np.exp(level + sd * self.of_lasers(len(of_model), 0, Purpose.UNIT_BASELINE))
        return np.clip(np.rint(drawn), 1.0, 255.0)

    def oscillator_ppm(self, spread: UnitSpread) -> float:
        """Error of the oscillator."""
        return spread.oscillator_ppm * self.normal(0, Purpose.UNIT_CLOCK) if spread.oscillator_ppm > 0.0 else 0.0

    def stamp_ppm(self, spread: UnitSpread) -> float:
        """Error of the stamps."""
        if not spread.stamp_ppm:
            return 0.0
        chosen = spread.stamp_ppm[int(self.uniform(1, Purpose.UNIT_CLOCK) * len(spread.stamp_ppm))]
        return chosen + spread.stamp_scatter_ppm * self.normal(2, Purpose.UNIT_CLOCK)

    def signal(self, spread: UnitSpread, of_model: SignalSpec, learned: UnitSpec) -> SignalSpec:
        """The receiver's signal of the unit: the model's, but for what differs between units, or what is known of this one."""
        straddle, empty, lost = spread.straddle_ratio, spread.empty_byte_ratio, spread.lost_byte_ratio
        changes, one_sided, known = spread.changes_per_byte, spread.one_sided_ratio, learned.one_sided_ratio
        return replace(
            of_model,
            correction_straddle_ratio=self._even(straddle, 0, Purpose.UNIT_SIGNAL) or of_model.correction_straddle_ratio,
            empty_byte_ratio=self.logarithmic(empty, 1, Purpose.UNIT_SIGNAL) or of_model.empty_byte_ratio,
            lost_byte_ratio=self.logarithmic(lost, 2, Purpose.UNIT_SIGNAL) or of_model.lost_byte_ratio,
            correction_changes_per_byte=self.logarithmic(changes, 3, Purpose.UNIT_SIGNAL) or of_model.correction_changes_per_byte,
            one_sided_ratio=(self.logarithmic(one_sided, 4, Purpose.UNIT_SIGNAL) or of_model.one_sided_ratio) if known is None else known,
            ripple_m=of_model.ripple_m * self._even(_RIPPLE_RATIO, 3, Purpose.SIGNAL_UNIT) if learned.ripple_m is None else learned.ripple_m,
        )

    def _even(self, limits: tuple[float, float], index: int, purpose: Purpose) -> float:
        low, high = limits
        return low + (high - low) * self.uniform(index, purpose)

    def phase_deg(self, spread: UnitSpread) -> float:
        """Azimuth of the head at the first firing."""
        return 360.0 * self.uniform(5, Purpose.UNIT_HEAD) if spread.has_any_phase else 0.0

    def wave(self, number: int, amplitude: float, ratio: float) -> tuple[float, float]:
        """Amplitude and phase in degrees of a wave of the curve."""
        phase_deg = 360.0 * self.uniform(10 + number, Purpose.UNIT_ENCODER)
        return amplitude * math.exp(ratio * self.normal(100 + number, Purpose.UNIT_ENCODER)), phase_deg
