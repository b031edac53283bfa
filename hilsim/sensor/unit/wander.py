"""Slow wander of the stamps about a regular clock, as a VLS-128 has it: a function of device time that looks like a first-order autoregression.

It is the sum of nine noises. Each is linear between random numbers at even distances, half as long as those of the former noise, and has half its variance.
So the mean square of a step grows with its length, as of a random walk, up to the longest distance, and does not grow beyond. No value depends on another one:
a stream can begin anywhere. The nine grids are shifted against each other, so that their random numbers do not come together.

Measured on ``vls128_strongest.pcap`` (2,193 stamps of a VLS-128, 0.364 s), as the residual from a straight line: 5.75 us rms, -16.9 to +14.2 us; cycle 165.825 us;
autocorrelation 0.989, 0.904, 0.521 and 0.055 at lags of 1, 12, 64 and 192 packets; mean square of steps over 1, 4, 16, 64 and 256 packets 0.62, 1.86, 6.75, 25.9 and
56.4 us^2, of which truncation to microseconds has 0.17.
"""

import math
from typing import NamedTuple

import numpy as np

from hilsim.compilation.jit import constant, kernel
from hilsim.rng import Purpose, normal
from hilsim.units import NS_PER_S

_NOISES = 9
_LINEAR_VARIANCE = 2.0 / 3.0
"""Mean variance of what is linear between random numbers of variance 1."""
_COUNT = constant(_NOISES)
_NEXT_SD_RATIO = math.sqrt(0.5)
_WANDER = constant(Purpose.STAMP_WANDER)


class StampWander(NamedTuple):
    """Kernel-side wander of a clock's stamps.

    Attributes:
        sd_ns: Standard deviation; 0: none.
        longest_sd_ns: Standard deviation of the random numbers of the noise with the longest distances.
        longest_ns: Its distances.
        seed: Random seed of the rig.
        stream: First random stream of the sensor, one for each noise.
    """

    sd_ns: float
    longest_sd_ns: float
    longest_ns: int
    seed: np.uint64
    stream: int


def build_stamp_wander(sd_us: float, longest_s: float, *, seed: int, stream: int) -> StampWander:
    """Build the kernel-side wander.

    Args:
        sd_us: Standard deviation; 0: none.
        longest_s: Longest distance of its random numbers.
        seed: Random seed of the rig.
        stream: The sensor's number within the rig.
    """
    variances = sum(0.5**number for number in range(_NOISES))
    return StampWander(
        sd_ns=1000.0 * sd_us,
        longest_sd_ns=1000.0 * sd_us / math.sqrt(_LINEAR_VARIANCE * variances),
        longest_ns=round(longest_s * NS_PER_S),
        seed=np.uint64(seed),
        stream=stream * _NOISES,
    )


def no_stamp_wander() -> StampWander:
    """Wander of a clock without one."""
    return build_stamp_wander(0.0, 1.0, seed=0, stream=0)


@kernel
def stamp_wander_ns(wander: StampWander, device_ns: int) -> int:
    """Lead of the stamps over a regular clock at a device time, in ns; before the first firing as at it."""
    if wander.sd_ns == 0.0:
        return 0
    total_ns = 0.0
    distance_ns, sd_ns = wander.longest_ns, wander.longest_sd_ns
    for number in range(_COUNT):
        shifted_ns = max(device_ns, 0) + number * distance_ns // 3
        knot = shifted_ns // distance_ns
        share = (shifted_ns - knot * distance_ns) / distance_ns
        before = normal(wander.seed, wander.stream + number, knot, _WANDER)
        after = normal(wander.seed, wander.stream + number, knot + 1, _WANDER)
        total_ns += sd_ns * (before + share * (after - before))
        distance_ns //= 2
        sd_ns *= _NEXT_SD_RATIO
    return int(np.floor(total_ns))
