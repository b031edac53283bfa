"""What all range sensors on a serial port share: how they ask for ranges, what they make of them, and how their bytes are due.

A range sensor never renders. It requests rays at given times, through ``Sample``, and turns the ranges into bytes with exact integer times; the owner of the world casts
the rays. Azimuths are those of a sensor frame (``geometry.frames``): clockwise seen from above, 0 straight ahead, in the plane of elevation 0; the frame's pose in the body is the
rig's ``mount_position_m`` and ``mount_rotation_deg``.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.links.timed_bytes import TimedBytes
from hilsim.rangefinders.specs import RangefinderSpec
from hilsim.rng import Purpose, normal

_RANGEFINDER_NOISE = constant(Purpose.RANGEFINDER_NOISE)


class Sample(Protocol):
    """True ranges of rays, as the caller's renderer finds them."""

    def __call__(self, time_ns: npt.NDArray[np.int64], azimuth_deg: npt.NDArray[np.float64]) -> npt.NDArray[np.floating]:
        """``float[n]`` metres, ``inf`` where a ray meets nothing, for rays at rig times ``int64[n]`` and azimuths ``float64[n]``."""
        ...


class Rangefinder(Protocol):
    """A range sensor behind a serial port."""

    def receive(self, data: bytes, time_ns: int) -> list[bytes]:
        """Take bytes that arrived at a rig time; returns the answers, one whole frame each, due at once."""
        ...

    def frames(self, from_ns: int, until_ns: int, sample: Sample) -> list[TimedBytes]:
        """Every frame due from ``from_ns`` up to but not including ``until_ns``, in order. Stretches must be asked for in order, between what is received."""
        ...

    def next_ns(self, from_ns: int) -> int:
        """When the sensor's next frame at or after a rig time is due, if it were to send."""
        ...


@kernel
def fill_measured(
    range_m: npt.NDArray[np.floating],
    first_index: int,
    noise_m: float,
    min_m: float,
    max_m: float,
    seed: np.uint64,
    stream: int,
    measured_m: npt.NDArray[np.float64],
) -> None:
    """Add noise and apply limits.

    Args:
        range_m: ``float[n]`` true ranges, ``inf`` for nothing.
        first_index: Number of the first measurement since rig time 0; noise is drawn by number.
        noise_m: Standard deviation.
        min_m: Nothing nearer is measured.
        max_m: Nothing farther is measured.
        seed: Of the rig.
        stream: The sensor's number.
        measured_m: ``float64[n]``, written; ``inf`` where nothing is measured.
    """
    for ray in range(range_m.size):
        measured_m[ray] = np.inf
        reach = float(range_m[ray])
        if reach < np.inf:
            if noise_m > 0.0:
                reach += noise_m * normal(seed, stream, first_index + ray, _RANGEFINDER_NOISE)
            if min_m <= reach <= max_m:
                measured_m[ray] = reach


def measured_ranges(spec: RangefinderSpec, range_m: npt.NDArray[np.floating], first_index: int, *, seed: int, stream: int) -> npt.NDArray[np.float64]:
    """``float64[n]``: ranges as the sensor measures them, ``inf`` where it measures nothing; arguments as for ``fill_measured``."""
    measured_m = np.empty(range_m.size, np.float64)
    fill_measured(range_m, first_index, spec.range_noise_m, spec.range_min_m, spec.range_max_m, np.uint64(seed), stream, measured_m)
    return measured_m


def echo_strength(measured_m: npt.NDArray[np.float64], *, at_limit: int, limit_m: float, ceiling: int) -> npt.NDArray[np.int64]:
    """``int64[n]`` strength that falls with the square of the range, is ``at_limit`` at ``limit_m``, at most ``ceiling``, and 0 where nothing was measured.

    No vendor publishes how its number relates to range; this keeps what is published: the least number that counts as reliable, and the largest.
    """
    with np.errstate(divide="ignore"):
        strength = at_limit * np.square(limit_m / measured_m)
    cut: npt.NDArray[np.int64] = np.minimum(np.floor(strength), ceiling).astype(np.int64)
    return cut
