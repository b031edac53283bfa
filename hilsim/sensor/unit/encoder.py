"""The encoder of a rotating head: its errors as settings, and its reading.

The true angle gets white noise, slow noise and a curve that is fixed over the turn; then it is read in one of two ways.

A counting encoder passes an edge every 0.05 deg; four such counts recur, as of a quadrature encoder with 1,800 lines. A coarse timer measures how long they last,
and does so wrongly: one of the four always seems longer than it is, another one shorter. Between edges the reading goes on as fast as the counts before seem to
have lasted, and waits for the next edge at the last hundredth. So a reading soon after an edge is exact and one long after it is not, and one class of the azimuth
modulo 5 is reported less often than the others: 14 % instead of 20 % at 600 rpm.

Any other: the encoder's grid, then the conversion to hundredths of a degree, whose classes modulo 20 (0.2 deg) are not equally wide.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import borrowing_kernel, constant
from hilsim.errors import require, within
from hilsim.rng import Purpose, normal, uniform
from hilsim.units import TURN_CDEG

CLASSES = 20
"""Classes of azimuths: hundredths of a degree modulo 0.2 deg, of which real encoders have 1,800 a turn."""
COUNTS = 4
"""Counts of a counting encoder in as many hundredths of a degree as there are classes."""
MAX_HARMONICS = 36
_TREND = 0.1
"""Share of the last change of duration by which a counting encoder expects the next count to differ from the last one: 0.09 to 0.13 in four VLP-16s."""
_CURVE_POINTS = 512
_MEAN_POINTS = 2000
_GOLDEN_RATIO = 0.6180339887498949
"""Its multiples are evenly distributed modulo 1, whatever their number."""
_CURVE_PLACES = constant(_CURVE_POINTS)
_CLASSES = constant(CLASSES)
_COUNTS = constant(COUNTS)
_COUNT_CDEG = constant(CLASSES // COUNTS)
_NOISE = constant(Purpose.ENCODER_NOISE)
_SLOW_NOISE = constant(Purpose.ENCODER_SLOW_NOISE)
_TIMER = constant(Purpose.ENCODER_TIMER)


@dataclass(frozen=True, kw_only=True)
class EncoderSpec:
    """Errors of the encoder: white noise on the head's angle, then the encoder's grid, then hundredths of a degree.

    Real units have different errors at different rates, so a model has one entry for each measured rate; the nearest is used.

    Attributes:
        rate_rpm: Rotation rate at which the entry was measured.
        tick_cdeg: Width of an encoder step in 0.01 deg; 0 for no grid.
        noise_cdeg: Standard deviation of the reading noise in 0.01 deg.
        rate_offset_rpm: Difference of the unit's mean rate from its setting.
        class_shares: Share of azimuths in each class modulo 20 hundredths of a degree, 20 numbers with a sum of 1; empty: all equal.
        slow_noise_cdeg: Standard deviation of a noise that changes slowly, in 0.01 deg.
        slow_noise_sequences: Number of firing sequences from one value of the slow noise to the next; linear in between.
        curve: Error that is fixed over the turn: amplitude in 0.01 deg and phase in degrees of its second harmonic, third harmonic and so on; the first one is
            ``rate_jitter.per_turn_ratio``.
        counts_cdeg: Widths that the counts of a counting encoder seem to have by its timer, 4 numbers, each 5 in truth; empty: it is not one. Its
            ``tick_cdeg`` is the angle turned in a tick of the timer, and ``class_shares`` are not used.
        count_gain: Speed of a counting encoder's reading between edges, relative to that of the counts before.
        count_zero_cdeg: Reading at the beginning of the first count, 0 to 19 hundredths of a degree.
    """

    rate_rpm: int
    tick_cdeg: float
    noise_cdeg: float
    rate_offset_rpm: float = 0.0
    class_shares: tuple[float, ...] = ()
    slow_noise_cdeg: float = 0.0
    slow_noise_sequences: int = 8
    curve: tuple[tuple[float, float], ...] = ()
    counts_cdeg: tuple[float, ...] = ()
    count_gain: float = 1.0
    count_zero_cdeg: int = 0

    def __post_init__(self) -> None:
        require(
            *within(self, tick_cdeg=(0, 100), noise_cdeg=(0, 100), slow_noise_cdeg=(0, 100), slow_noise_sequences=(1, 10_000), count_gain=(0.1, 10)),
            (self.rate_rpm > 0, f"rate_rpm must be above 0, got {self.rate_rpm}"),
            (abs(self.rate_offset_rpm) <= 3.0, f"rate_offset_rpm must be at most 3 either way (the manual's tolerance), got {self.rate_offset_rpm}"),
            class_rule(self.class_shares),
            (
                not self.counts_cdeg or (len(self.counts_cdeg) == COUNTS and all(1.0 <= width <= 10.0 for width in self.counts_cdeg)),
                f"counts_cdeg must be {COUNTS} numbers of 1 to 10, got {list(self.counts_cdeg)}",
            ),
            (not self.counts_cdeg or self.tick_cdeg > 0.0, "tick_cdeg of a counting encoder must be above 0, got 0"),
            (0 <= self.count_zero_cdeg < CLASSES, f"count_zero_cdeg must be 0 to {CLASSES - 1}, got {self.count_zero_cdeg}"),
            (len(self.curve) <= MAX_HARMONICS, f"curve must have at most {MAX_HARMONICS} harmonics, got {len(self.curve)}"),
            *(
                (
                    0.0 <= amplitude <= 100.0 and abs(phase) <= 360.0,
                    f"curve must have amplitudes of 0 to 100 and phases of -360 to 360, got {[amplitude, phase]}",
                )
                for amplitude, phase in self.curve
            ),
        )


def class_rule(shares: tuple[float, ...]) -> tuple[bool, str]:
    """Check shares of azimuths in classes; returns the condition and its error message for ``require``."""
    is_whole = len(shares) == CLASSES and all(share >= 0.0 for share in shares) and abs(sum(shares) - 1.0) <= 0.01
    return not shares or is_whole, f"class_shares must be {CLASSES} numbers of 0 or more with a sum of 1, got {list(shares)}"


@dataclass(frozen=True, kw_only=True)
class RateJitterSpec:
    """Oscillations of the rotation rate about its mean.

    Attributes:
        per_turn_ratio: Amplitude, relative to the mean rate, of an oscillation once per turn (imbalance).
        drift_ratio: Amplitude, relative to the mean rate, of a slow oscillation.
        drift_period_s: Period of the slow oscillation.
    """

    moved_keys: ClassVar[Mapping[str, str]] = {"wander_ratio": "drift_ratio", "wander_period_s": "drift_period_s"}

    per_turn_ratio: float = 0.0
    drift_ratio: float = 0.0
    drift_period_s: float = 2.0

    def __post_init__(self) -> None:
        require(*within(self, per_turn_ratio=(0, 0.2), drift_ratio=(0, 0.2), drift_period_s=(0.1, 1000)))


class Encoder(NamedTuple):
    """Kernel-side encoder; the settings are explained in ``EncoderSpec``.

    Attributes:
        tick_cdeg: Width of the grid.
        noise_cdeg: Standard deviation of white noise.
        slow_noise_cdeg: Standard deviation of slow noise.
        slow_noise_sequences: Firing sequences between its values.
        edge_cdeg: ``float64[21]``, angle at which each class begins, from the first one's; empty: each class is 0.01 deg wide.
        counts_cdeg: ``EncoderSpec.counts_cdeg``, ``float64[4]``; empty: it is no counting encoder.
        begin_cdeg: Angle at which the first count begins, so that the mean error of the reading is 0.
        curve_cdeg: ``float64[513]``, error at angles from 0 to a turn; empty: none.
        count_gain: ``EncoderSpec.count_gain``.
        count_zero_cdeg: ``EncoderSpec.count_zero_cdeg``.
        seed: Random seed of the rig.
        stream: The sensor's number.
    """

    tick_cdeg: float
    noise_cdeg: float
    slow_noise_cdeg: float
    slow_noise_sequences: int
    edge_cdeg: npt.NDArray[np.float64]
    counts_cdeg: npt.NDArray[np.float64]
    begin_cdeg: float
    curve_cdeg: npt.NDArray[np.float64]
    count_gain: float
    count_zero_cdeg: int
    seed: np.uint64
    stream: int


def no_encoder() -> Encoder:
    """Placeholder encoder of a sensor without one."""
    return Encoder(0.0, 0.0, 0.0, 1, np.zeros(0), np.zeros(0), 0.0, np.zeros(0), 1.0, 0, np.uint64(0), 0)


def build_encoder(spec: EncoderSpec, *, seed: int, stream: int) -> Encoder:
    """Build the kernel-side encoder; ``stream`` is the sensor's number within the rig."""
    counts_cdeg = np.array(spec.counts_cdeg, np.float64)
    return Encoder(
        tick_cdeg=spec.tick_cdeg,
        noise_cdeg=spec.noise_cdeg,
        slow_noise_cdeg=spec.slow_noise_cdeg,
        slow_noise_sequences=int(spec.slow_noise_sequences),
        edge_cdeg=_edges_cdeg(() if spec.counts_cdeg else spec.class_shares),
        counts_cdeg=counts_cdeg,
        begin_cdeg=spec.count_zero_cdeg + (_mean_error_cdeg(counts_cdeg, spec.tick_cdeg, spec.count_gain) if counts_cdeg.size else 0.0),
        curve_cdeg=curve_cdeg(spec.curve) if spec.curve else np.zeros(0),
        count_gain=spec.count_gain,
        count_zero_cdeg=spec.count_zero_cdeg,
        seed=np.uint64(seed),
        stream=stream,
    )


def _edges_cdeg(shares: tuple[float, ...]) -> npt.NDArray[np.float64]:
    """``Encoder.edge_cdeg``, placed so that the mean error is 0."""
    if not shares:
        return np.zeros(0)
    edge = np.concatenate(([0.0], np.cumsum(shares) / sum(shares))) * CLASSES
    middle = (edge[1:] + edge[:-1]) / 2.0
    return np.asarray(edge + np.sum(np.diff(edge) * (np.arange(CLASSES) - middle)) / CLASSES)


def _mean_error_cdeg(counts_cdeg: npt.NDArray[np.float64], tick_cdeg: float, gain: float) -> float:
    """Mean error of a counting encoder's reading over angles and phases of the timer."""
    angle = np.arange(_MEAN_POINTS) * (CLASSES / _MEAN_POINTS)
    phase = np.arange(_MEAN_POINTS) * _GOLDEN_RATIO % 1.0
    return float(np.mean([_counted(counts_cdeg, tick_cdeg, gain, *each) - each[0] for each in zip(angle, phase, strict=True)]))


def curve_cdeg(curve: tuple[tuple[float, float], ...]) -> npt.NDArray[np.float64]:
    """Error of a curve, in 0.01 deg, at 513 angles from 0 to a turn."""
    turn = 2.0 * np.pi * np.arange(_CURVE_POINTS + 1) / _CURVE_POINTS
    waves = [amplitude * np.sin(harmonic * turn + math.radians(phase)) for harmonic, (amplitude, phase) in enumerate(curve, 2)]
    return np.asarray(np.sum(waves, axis=0))


@borrowing_kernel
def _curve_at(curve: npt.NDArray[np.float64], angle_cdeg: float) -> float:
    place = angle_cdeg / TURN_CDEG
    place = (place - np.floor(place)) * _CURVE_PLACES
    point = min(int(place), _CURVE_PLACES - 1)
    return float(curve[point] + (place - point) * (curve[point + 1] - curve[point]))


@borrowing_kernel
def _slow_noise(encoder: Encoder, sequence: int) -> float:
    """Slow noise at a firing sequence: linear between random numbers."""
    knot = sequence // encoder.slow_noise_sequences
    share = (sequence - knot * encoder.slow_noise_sequences) / encoder.slow_noise_sequences
    before = normal(encoder.seed, encoder.stream, knot, _SLOW_NOISE)
    after = normal(encoder.seed, encoder.stream, knot + 1, _SLOW_NOISE)
    return float(encoder.slow_noise_cdeg * (before + share * (after - before)))


@borrowing_kernel
def _counted(counts: npt.NDArray[np.float64], tick_cdeg: float, gain: float, turned_cdeg: float, phase: float) -> int:
    """Reading of a counting encoder at an angle from the beginning of a first count; ``phase`` is where in a tick of the timer the last edge falls, 0 to 1."""
    count = int(np.floor(turned_cdeg / _COUNT_CDEG))
    last, before = counts[(count + _COUNTS - 1) % _COUNTS] / tick_cdeg, counts[(count + _COUNTS - 2) % _COUNTS] / tick_cdeg
    lasted = -np.floor(phase - last)
    ticks = max(lasted + _TREND * (2.0 * lasted + np.floor(phase - last - before)), 1.0)
    gone = (turned_cdeg - count * _COUNT_CDEG) * gain * _COUNT_CDEG / (ticks * tick_cdeg)
    return count * _COUNT_CDEG + min(int(gone), _COUNT_CDEG - 1)


@borrowing_kernel
def encoder_code(encoder: Encoder, angle_cdeg: float, sequence: int) -> int:
    """Convert an angle with its errors beside white noise to the code of a packet: hundredths of a degree, 0..35999."""
    read_cdeg = angle_cdeg
    if encoder.noise_cdeg > 0.0:
        read_cdeg += encoder.noise_cdeg * normal(encoder.seed, encoder.stream, sequence, _NOISE)
    if encoder.counts_cdeg.size > 0:
        phase = uniform(encoder.seed, encoder.stream, sequence, _TIMER)
        counted = _counted(encoder.counts_cdeg, encoder.tick_cdeg, encoder.count_gain, read_cdeg - encoder.begin_cdeg, phase)
        return int(encoder.count_zero_cdeg + counted) % TURN_CDEG
    edge = encoder.edge_cdeg
    if encoder.tick_cdeg > 0.0:
        read_cdeg = encoder.tick_cdeg * np.floor(read_cdeg / encoder.tick_cdeg + 0.5)
    if edge.size == 0:
        return int(np.floor(read_cdeg + 0.5)) % TURN_CDEG
    period = np.floor((read_cdeg - edge[0]) / _CLASSES)
    inside_cdeg = read_cdeg - period * _CLASSES
    number = 0
    while number < _CLASSES - 1 and inside_cdeg >= edge[number + 1]:
        number += 1
    return int(period * _CLASSES + number) % TURN_CDEG


@borrowing_kernel
def encoder_error_cdeg(encoder: Encoder, angle_cdeg: float, sequence: int) -> float:
    """Error before the grid beside white noise: slow noise and the curve over the turn."""
    error = 0.0
    if encoder.slow_noise_cdeg > 0.0:
        error += _slow_noise(encoder, sequence)
    if encoder.curve_cdeg.size > 0:
        error += _curve_at(encoder.curve_cdeg, angle_cdeg)
    return error
