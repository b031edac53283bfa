"""Times of position packets: several periodic schedules, which makes intervals irregular and asynchronous to the data packets.

Real VLP-16s of 2014-2016 send one packet about every 10.04 ms and another about every 21.25 ms (145.8 a second together; intervals 1.3 to 10.7 ms), whereas the manual specifies one for every
14 data packets. The time of packet k of a schedule is a pure function of k, so any interval of time can be computed on its own.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.rng import Purpose, uniform
from hilsim.sensor.unit.position import PositionSpec

_JITTER = constant(Purpose.POSITION_JITTER)
_SCHEDULES_PER_STREAM = 8
_FIRST_SCHEDULE = constant(0)
NEVER_NS = 1 << 60
"""36 years: a time that never comes."""


class PositionStream(NamedTuple):
    """Kernel-side position stream.

    Attributes:
        period_ns: ``int64[t]``, period of each schedule.
        jitter_ns: ``int64[t]``, jitter of each schedule.
        phase_ns: ``int64[t]``, device time of each schedule's packet 0.
        minimum_gap_ns: Minimum interval between a later schedule's packet and one of schedule 0.
        latency_ns: Time from a packet's stamp to its departure.
        seed: Random seed of the rig.
        stream: The sensor's number.
        is_sent: Whether the packets are sent. A change of a running sensor changes this alone: its times remain those that it began with.
    """

    period_ns: npt.NDArray[np.int64]
    jitter_ns: npt.NDArray[np.int64]
    phase_ns: npt.NDArray[np.int64]
    minimum_gap_ns: int
    latency_ns: int
    seed: np.uint64
    stream: int
    is_sent: bool = True


def build_position_stream(spec: PositionSpec, *, seed: int, stream: int) -> PositionStream:
    """Build the kernel-side stream; each schedule's phase is drawn from the rig's seed."""
    period = np.array([round(schedule.period_us * 1000) for schedule in spec.schedules], dtype=np.int64)
    jitter = np.array([round(schedule.jitter_us * 1000) for schedule in spec.schedules], dtype=np.int64)
    share = [uniform(np.uint64(seed), stream * _SCHEDULES_PER_STREAM + schedule, 0, int(Purpose.DEVICE)) for schedule in range(len(period))]
    return PositionStream(
        period_ns=period,
        jitter_ns=jitter,
        phase_ns=jitter + (np.array(share) * period).astype(np.int64),
        minimum_gap_ns=round(spec.minimum_gap_us * 1000),
        latency_ns=round(spec.latency_us * 1000),
        seed=np.uint64(seed),
        stream=stream,
    )


def build_periodic_stream(period_ns: int | None, *, seed: int, stream: int) -> PositionStream:
    """Build a stream that begins with the sensor and keeps its period exactly; None for an empty stream."""
    period = np.array([] if period_ns is None else [period_ns], dtype=np.int64)
    still = np.zeros(period.size, dtype=np.int64)
    return PositionStream(period_ns=period, jitter_ns=still, phase_ns=still, minimum_gap_ns=0, latency_ns=0, seed=np.uint64(seed), stream=stream)


@kernel
def _unshifted_ns(stream: PositionStream, schedule: int, index: int) -> int:
    draw = uniform(stream.seed, stream.stream * _SCHEDULES_PER_STREAM + schedule, index, _JITTER)
    return int(stream.phase_ns[schedule] + index * stream.period_ns[schedule] + int((2.0 * draw - 1.0) * stream.jitter_ns[schedule]))


@kernel
def position_time_ns(stream: PositionStream, schedule: int, index: int) -> int:
    """Device time (ns) at which a schedule's packet is assembled; a packet too close to one of schedule 0 is delayed to the minimum gap after it."""
    time_ns = _unshifted_ns(stream, schedule, index)
    if schedule == 0:
        return time_ns
    near = (time_ns - stream.phase_ns[0]) // stream.period_ns[0]
    for other in range(max(near - 1, 0), near + 3):
        first_ns = _unshifted_ns(stream, _FIRST_SCHEDULE, other)
        if abs(first_ns - time_ns) < stream.minimum_gap_ns:
            return first_ns + stream.minimum_gap_ns
    return time_ns


@kernel
def seek_positions(stream: PositionStream, device_ns: int, counters: npt.NDArray[np.int64]) -> None:
    """Set ``counters`` (``int64[t]``) to the number of each schedule's first packet at or after a device time."""
    for schedule in range(counters.size):
        index = max((device_ns - stream.phase_ns[schedule]) // stream.period_ns[schedule] - 2, 0)
        while position_time_ns(stream, schedule, index) < device_ns:
            index += 1
        counters[schedule] = index


@kernel
def next_position(stream: PositionStream, counters: npt.NDArray[np.int64]) -> tuple[int, int]:
    """Schedule and device time (ns) of the earliest packet not yet taken; ``NEVER_NS`` without schedules. The caller increments that schedule's counter."""
    if counters.size == 0:
        return 0, NEVER_NS
    best = 0
    best_ns = position_time_ns(stream, _FIRST_SCHEDULE, counters[0])
    for schedule in range(1, counters.size):
        time_ns = position_time_ns(stream, schedule, counters[schedule])
        if time_ns < best_ns:
            best, best_ns = schedule, time_ns
    return best, best_ns
