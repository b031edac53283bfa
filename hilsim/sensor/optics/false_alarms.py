"""Returns that no surface sent: false alarms, caused by noise in the receiver (mostly sunlight), and spurious returns, which hide every surface.

Rice's rate for Gaussian noise, ``exp(-TNR^2 / 2) / (2 sqrt(3) tau)``, over a gate of 667 ns (100 m) and a pulse of 5 ns gives 1.4e-4 a firing at a threshold of five standard
deviations [C]; a laboratory lidar around noon had 8e-4 [S, an abstract on adaptive noise suppression, Institute of Microelectronics CAS]. No published rate of a Velodyne was found.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from hilsim.compilation.jit import constant, kernel
from hilsim.errors import require, within
from hilsim.rng import Purpose, uniform_pair

_FALSE_ALARM, _SPURIOUS = constant(Purpose.FALSE_ALARM), constant(Purpose.SPURIOUS)
_ENERGY_SPREAD = 0.4  # energy is uniform from the threshold to 1.4 times it [R]


@dataclass(frozen=True, kw_only=True)
class SunSpec:
    """The sun, which makes more false alarms in firings towards it.

    Attributes:
        azimuth_deg: Direction, clockwise from north.
        elevation_deg: Height above the horizon.
        rate_per_firing: False alarms of a firing straight at it, in addition to the others, 0 to 0.5. No source gives a rate [R]: unproven.
        width_deg: Angle from the sun at which the rate has fallen to 1/e.
    """

    azimuth_deg: float = 180.0
    elevation_deg: float = 30.0
    rate_per_firing: float = 0.0
    width_deg: float = 5.0

    def __post_init__(self) -> None:
        require(*within(self, azimuth_deg=(0, 360), elevation_deg=(-90, 90), rate_per_firing=(0, 0.5), width_deg=(0.1, 90)))


@dataclass(frozen=True, kw_only=True)
class FalseAlarmSpec:
    """Rate of false alarms.

    Attributes:
        rate_per_firing: Probability per firing, 0 to 0.1. Recommended, unproven [R]: night 0, sun 1.4e-4, strong sun 8e-4.
        sun: The sun.
    """

    moved_keys: ClassVar[Mapping[str, str]] = {"rate_per_shot": "rate_per_firing"}

    rate_per_firing: float = 0.0
    sun: SunSpec = field(default_factory=SunSpec)

    def __post_init__(self) -> None:
        require(*within(self, rate_per_firing=(0, 0.1)))


@dataclass(frozen=True, kw_only=True)
class SpuriousSpec:
    """Spurious returns ("cosmic noise"): at this rate a firing reports a range at random in place of whatever it hit, to test filters with.

    Attributes:
        rate: Probability per firing, 0 to 1.
        max_range_m: Ranges are uniform from the model's smallest one to this, or to the model's largest one where that is less.
    """

    rate: float = 0.0
    max_range_m: float = 100.0

    def __post_init__(self) -> None:
        require(*within(self, rate=(0, 1), max_range_m=(1, 1000)))


class FalseAlarms(NamedTuple):
    """Kernel-side returns of no surface.

    Attributes:
        rate_per_firing: ``FalseAlarmSpec.rate_per_firing``.
        sun_rate: ``SunSpec.rate_per_firing``.
        sun_width_rad: ``SunSpec.width_deg``.
        sun_x: Direction of the sun in the world: east.
        sun_y: North.
        sun_z: Up.
        spurious_rate: ``SpuriousSpec.rate``.
        spurious_max_m: ``SpuriousSpec.max_range_m``.
    """

    rate_per_firing: float
    sun_rate: float = 0.0
    sun_width_rad: float = 1.0
    sun_x: float = 0.0
    sun_y: float = 0.0
    sun_z: float = 1.0
    spurious_rate: float = 0.0
    spurious_max_m: float = 0.0


def build_false_alarms(spec: FalseAlarmSpec, spurious: SpuriousSpec | None = None) -> FalseAlarms:
    """Build the kernel-side returns of no surface."""
    azimuth, elevation = math.radians(spec.sun.azimuth_deg), math.radians(spec.sun.elevation_deg)
    return FalseAlarms(
        rate_per_firing=float(spec.rate_per_firing),
        sun_rate=float(spec.sun.rate_per_firing),
        sun_width_rad=math.radians(spec.sun.width_deg),
        sun_x=math.cos(elevation) * math.sin(azimuth),
        sun_y=math.cos(elevation) * math.cos(azimuth),
        sun_z=math.sin(elevation),
        spurious_rate=float(spurious.rate) if spurious is not None else 0.0,
        spurious_max_m=float(spurious.max_range_m) if spurious is not None else 0.0,
    )


@kernel
def has_false_alarms(alarms: FalseAlarms) -> bool:
    """Whether some firing can report what no surface sent."""
    return max(alarms.rate_per_firing, alarms.sun_rate, alarms.spurious_rate) > 0.0


@kernel
def alarm_rate(alarms: FalseAlarms, east: float, north: float, up: float) -> float:
    """Probability of a false alarm of a firing in a direction of the world, a unit vector."""
    if alarms.sun_rate <= 0.0:
        return alarms.rate_per_firing
    cosine = east * alarms.sun_x + north * alarms.sun_y + up * alarms.sun_z
    away = math.acos(min(1.0, max(-1.0, cosine))) / alarms.sun_width_rad
    return alarms.rate_per_firing + alarms.sun_rate * math.exp(-away)


@kernel
def false_alarm(rate: float, seed: int | np.uint64, stream: int, sequence: int, max_range_m: float, threshold_energy: float) -> tuple[float, float]:
    """Range (m) and energy of a firing's false alarm; both 0 if there is none.

    Args:
        rate: Probability of one.
        seed: Random seed of the rig.
        stream: Random stream of the channel.
        sequence: Index of the firing sequence, from 0.
        max_range_m: Largest range; ranges are uniform because noise is.
        threshold_energy: Detection threshold; energies are uniform from this to 1.4 times it.
    """
    if rate <= 0.0:
        return 0.0, 0.0
    occurs, place = uniform_pair(seed, stream, sequence, _FALSE_ALARM)
    if occurs >= rate:
        return 0.0, 0.0
    excess = occurs / rate  # uniform in [0, 1), given that a false alarm occurs
    return (1.0 - place) * max_range_m, threshold_energy * (1.0 + _ENERGY_SPREAD * excess)


@kernel
def spurious_return(
    alarms: FalseAlarms, seed: int | np.uint64, stream: int, sequence: int, nearest_m: float, farthest_m: float
) -> tuple[float, float]:
    """Range (m) and energy of a firing's spurious return; both 0 if there is none.

    Args:
        alarms: Their rate and reach.
        seed: Random seed of the rig.
        stream: Random stream of the channel.
        sequence: Index of the firing sequence, from 0.
        nearest_m: The model's smallest range.
        farthest_m: The model's largest range.
    """
    occurs, place = uniform_pair(seed, stream, sequence, _SPURIOUS)
    if occurs >= alarms.spurious_rate:
        return 0.0, 0.0
    range_m = nearest_m + place * (min(alarms.spurious_max_m, farthest_m) - nearest_m)
    return range_m, (occurs / alarms.spurious_rate) / (range_m * range_m)  # its reflectivity is uniform from 0 to 100 %
