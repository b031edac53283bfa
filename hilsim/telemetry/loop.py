"""Readings of the sending loop's arrays: without locks, and without effect on the loop."""

import errno
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hilsim.telemetry.metrics import LATENCY_BOUNDS_S, TIMING_BOUNDS_S, HistogramReading, counted
from hilsim.telemetry.readings import FlowReading
from hilsim.transmit.faults.arrays import NetworkCount
from hilsim.transmit.ring import Rings
from hilsim.transmit.statistics import Counter, LoopStatistics, bin_upper_bounds_ns

_BIN_UPPER_NS = bin_upper_bounds_ns()


def read_flows(
    names: Sequence[str], statistics: LoopStatistics, rings: Rings, now_ns: int, befallen: npt.NDArray[np.int64]
) -> tuple[FlowReading, ...]:
    """One reading per flow.

    Args:
        names: ``"<sensor>/<flow>"`` of the first rows of ``statistics`` and ``rings``, in their order.
        statistics: Counters of the loop.
        rings: Rings of the loop.
        now_ns: CLOCK_MONOTONIC time, for the age of the last datagram.
        befallen: What faults of the network did, ``NetworkFaults.counts``.
    """
    rows = len(names)
    counters = statistics.counters[:rows].tolist()
    waiting = (rings.tail[:rows, 0] - rings.head[:rows, 0]).tolist()
    lateness = read_histograms(TIMING_BOUNDS_S, statistics.lateness[:rows], [row[Counter.LATENESS_SUM_NS] for row in counters])
    interval = read_histograms(TIMING_BOUNDS_S, statistics.interval_error[:rows], [row[Counter.INTERVAL_ERROR_SUM_NS] for row in counters])
    pose = read_histograms(LATENCY_BOUNDS_S, statistics.pose_latency[:rows], [row[Counter.POSE_LATENCY_SUM_NS] for row in counters])
    return tuple(
        FlowReading(
            **counted(FlowReading, (Counter, counters[row])),
            sensor=name.rpartition("/")[0],
            flow=name.rpartition("/")[2],
            send_errors=_by_errno(statistics.send_errors[row]),
            network_faults={effect.name.lower(): int(befallen[row, effect]) for effect in NetworkCount if befallen[row, effect]},
            ring_depth_packets=max(waiting[row], 0),  # head may have advanced between the two loads
            ring_capacity_packets=rings.deadline_ns.shape[1],
            last_sent_age_s=_age_s(counters[row][Counter.LAST_SEND_NS], now_ns),
            lateness_max_s=counters[row][Counter.LATENESS_MAX_NS] / 1e9,
            lateness=lateness[row],
            interval_error=interval[row],
            pose_to_wire=pose[row] if pose[row].cumulative[-1] else None,
        )
        for row, name in enumerate(names)
    )


def read_loop_turn_age_s(statistics: LoopStatistics, now_ns: int) -> float | None:
    """Time since the loop's last turn; None before its first."""
    return _age_s(int(statistics.pass_ns[0]), now_ns)


def read_histograms(bounds_s: tuple[float, ...], bins: npt.NDArray[np.int64], sum_ns: Sequence[int]) -> list[HistogramReading]:
    """Convert log-linear histograms ``int64[n, 512]`` of the loop or of render threads to the coarser buckets of a metric's bounds.

    A bin that contains a bound counts as above it, so the figures are conservative. ``sum_ns`` has ``n`` sums.
    """
    bounds_ns = np.rint(np.asarray(bounds_s) * 1e9).astype(np.int64)
    last_below = np.searchsorted(_BIN_UPPER_NS[:-1], bounds_ns, side="right") - 1
    cumulative = np.cumsum(bins, axis=1)[:, [*last_below, -1]]
    return [HistogramReading(cumulative=tuple(counts), sum_s=total / 1e9) for counts, total in zip(cumulative.tolist(), sum_ns, strict=True)]


def _age_s(stamp_ns: int, now_ns: int) -> float | None:
    """Age of a stamp; None if it was never set; 0 where the loop wrote it after ``now_ns`` was read."""
    return max(now_ns - stamp_ns, 0) / 1e9 if stamp_ns else None


def _by_errno(counts: npt.NDArray[np.int64]) -> dict[str, int]:
    return {errno.errorcode.get(int(number), "other"): int(counts[number]) for number in np.flatnonzero(counts)}
