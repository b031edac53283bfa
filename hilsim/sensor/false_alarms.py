"""False alarms: returns caused by noise in the receiver, mostly sunlight.

Rice's rate for Gaussian noise, ``exp(-TNR^2 / 2) / (2 sqrt(3) tau)``, over a gate of 667 ns (100 m) and a pulse of 5 ns gives 1.4e-4 a firing at a threshold of five standard
deviations [C]; a laboratory lidar around noon had 8e-4 [S, an abstract on adaptive noise suppression, Institute of Microelectronics CAS]. No published rate of a Velodyne was found.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from hilsim.compilation.jit import constant, kernel
from hilsim.errors import require
from hilsim.rng import Purpose, uniform_pair

_FALSE_ALARM = constant(Purpose.FALSE_ALARM)
_ENERGY_SPREAD = 0.4  # energy is uniform from the threshold to 1.4 times it [R]


@dataclass(frozen=True, kw_only=True)
class FalseAlarmSpec:
    """Rate of false alarms.

    Attributes:
        rate_per_firing: Probability per firing, 0 to 0.1. Recommended, unproven [R]: night 0, sun 1.4e-4, strong sun 8e-4.
    """

    moved_keys: ClassVar[Mapping[str, str]] = {"rate_per_shot": "rate_per_firing"}

    rate_per_firing: float = 0.0

    def __post_init__(self) -> None:
        require((0.0 <= self.rate_per_firing <= 0.1, f"rate_per_firing must be 0 to 0.1, got {self.rate_per_firing}"))


class FalseAlarms(NamedTuple):
    """Kernel-side false alarms; ``rate_per_firing`` is that of ``FalseAlarmSpec``."""

    rate_per_firing: float


def build_false_alarms(spec: FalseAlarmSpec) -> FalseAlarms:
    """Build the kernel-side false alarms."""
    return FalseAlarms(float(spec.rate_per_firing))


@kernel
def false_alarm(
    alarms: FalseAlarms, seed: int | np.uint64, stream: int, sequence: int, max_range_m: float, threshold_energy: float
) -> tuple[float, float]:
    """Range (m) and energy of a firing's false alarm; both 0 if there is none.

    Args:
        alarms: Rate of false alarms.
        seed: Random seed of the rig.
        stream: Random stream of the channel.
        sequence: Index of the firing sequence, from 0.
        max_range_m: Largest range; ranges are uniform because noise is.
        threshold_energy: Detection threshold; energies are uniform from this to 1.4 times it.
    """
    if alarms.rate_per_firing == 0.0:
        return 0.0, 0.0
    occurs, place = uniform_pair(seed, stream, sequence, _FALSE_ALARM)
    if occurs >= alarms.rate_per_firing:
        return 0.0, 0.0
    excess = occurs / alarms.rate_per_firing  # uniform in [0, 1), given that a false alarm occurs
    return (1.0 - place) * max_range_m, threshold_energy * (1.0 + _ENERGY_SPREAD * excess)
