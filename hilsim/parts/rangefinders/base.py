"""Common part of range sensors on a serial port: requests for ranges, measurement, and due times of frames.

A range sensor never renders. It requests rays at given times, through ``Sample``, and converts the ranges to bytes with exact integer times; the owner of the world casts
the rays. Azimuths are those of a sensor frame (``world.geometry.frames``): clockwise seen from above, 0 straight ahead, in the plane of elevation 0; the frame's pose in the body is the
rig's ``mount_position_m`` and ``mount_rotation_deg``.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.faults.catalogue import Effect
from hilsim.faults.table import FaultTable, strength
from hilsim.parts.rangefinders.specs import RangefinderSpec
from hilsim.rng import Purpose, normal
from hilsim.transmit.links.timed_bytes import TimedBytes

_RANGEFINDER_NOISE, _FAULT_RANGE = constant(Purpose.RANGEFINDER_NOISE), constant(Purpose.FAULT_RANGE)
_MISREAD, _KEEP = constant(Effect.MISREAD), constant(Effect.KEEP)


class Sample(Protocol):
    """True ranges of rays, as the caller's renderer finds them."""

    def __call__(self, time_ns: npt.NDArray[np.int64], azimuth_deg: npt.NDArray[np.float64]) -> npt.NDArray[np.floating]:
        """Ranges ``float[n]`` in metres, ``inf`` for a miss, of rays at rig times ``int64[n]`` and azimuths ``float64[n]``."""
        ...


class Rangefinder(Protocol):
    """A range sensor behind a serial port."""

    def receive(self, data: bytes, time_ns: int) -> list[bytes]:
        """Process bytes that arrived at a rig time; returns the answers, one whole frame each, due at once."""
        ...

    def frames(self, from_ns: int, until_ns: int, sample: Sample) -> list[TimedBytes]:
        """All frames due from ``from_ns`` up to but not including ``until_ns``, in order. Calls must be in order of time, interleaved with ``receive``."""
        ...

    def next_ns(self, from_ns: int) -> int:
        """Due time of the sensor's next frame at or after a rig time, if it sends."""
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
        range_m: ``float[n]``, true ranges, ``inf`` for a miss.
        first_index: Number of the first measurement since rig time 0, which selects the noise.
        noise_m: Standard deviation of the noise.
        min_m: Minimum range.
        max_m: Maximum range.
        seed: Random seed of the rig.
        stream: The sensor's number.
        measured_m: ``float64[n]``, output; ``inf`` for no measurement.
    """
    for ray in range(range_m.size):
        measured_m[ray] = np.inf
        reach = float(range_m[ray])
        if reach < np.inf:
            if noise_m > 0.0:
                reach += noise_m * normal(seed, stream, first_index + ray, _RANGEFINDER_NOISE)
            if min_m <= reach <= max_m:
                measured_m[ray] = reach


@kernel
def break_ranges(faults: FaultTable, time_ns: npt.NDArray[np.int64], range_m: npt.NDArray[np.floating], last_m: npt.NDArray[np.float64]) -> None:
    """Falsify true ranges ``float[n]`` at rig times; ``last_m`` is ``float64[1]``, the last range that was found."""
    for ray in range(range_m.size):
        reach, found = float(range_m[ray]), True
        for row in range(faults.effect.size):
            acts = strength(faults, row, time_ns[ray])
            if faults.effect[row] == _MISREAD and acts > 0.0:
                noise = normal(np.uint64(faults.seed[row]), 0, time_ns[ray], _FAULT_RANGE)
                reach += acts * (faults.value[row, 0] + faults.value[row, 1] * noise)
            elif faults.effect[row] == _KEEP and acts > 0.0:
                reach, found = last_m[0], False
        if found:
            last_m[0] = reach
        range_m[ray] = reach


def measured_ranges(spec: RangefinderSpec, range_m: npt.NDArray[np.floating], first_index: int, *, seed: int, stream: int) -> npt.NDArray[np.float64]:
    """Measured ranges ``float64[n]``, ``inf`` for no measurement; arguments as in ``fill_measured``."""
    measured_m = np.empty(range_m.size, np.float64)
    fill_measured(range_m, first_index, spec.range_noise_m, spec.range_min_m, spec.range_max_m, np.uint64(seed), stream, measured_m)
    return measured_m


def echo_strength(measured_m: npt.NDArray[np.float64], *, at_limit: int, limit_m: float, ceiling: int) -> npt.NDArray[np.int64]:
    """Echo strength ``int64[n]``, decreasing with the square of the range: ``at_limit`` at ``limit_m``, at most ``ceiling``, 0 for no measurement.

    No vendor publishes the relation to range; the published values are kept: the smallest that counts as reliable, and the largest.
    """
    with np.errstate(divide="ignore"):
        strength = at_limit * np.square(limit_m / measured_m)
    cut: npt.NDArray[np.int64] = np.minimum(np.floor(strength), ceiling).astype(np.int64)
    return cut
