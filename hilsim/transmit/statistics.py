"""Counters of the sending loop: arrays with a single writer that any thread may read at any time without waiting.

Every element is an aligned ``int64`` written by one thread, so a reader gets whole values; values of different arrays may differ by one
datagram. Histograms are log-linear: 16 bins per octave, which bounds the error of a quantile by 1/16, up to 2**35 ns (34 s).
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import shared_words
from hilsim.compilation.jit import kernel
from hilsim.errors import require
from hilsim.transmit.brake import allocate_brake

BINS = 512
ERRNOS = 134
"""Linux numbers its errors 1 to 133 (include/uapi/asm-generic/errno.h); anything else is counted as 0."""

_SUB_BITS = 4
_SUB_BINS = 16


class Counter(IntEnum):
    """Columns of ``LoopStatistics.counters``."""

    PACKETS = 0
    """Datagrams the kernel accepted."""
    BYTES = 1
    """Bytes of the accepted datagrams (UDP payload, or the whole frame)."""
    LATE = 2
    """Datagrams whose deadline was missed by more than the late limit, sent or not."""
    DROPPED = 3
    """Late datagrams that were not sent (policy "skip")."""
    UNDERRUN = 4
    """Datagrams put into an empty ring after their deadline: their producer was too slow."""
    EARLY = 5
    """Datagrams sent before their deadline; always 0, counted as proof."""
    SEND_ERROR = 6
    """Datagrams the kernel refused; ``send_errors`` counts the reasons."""
    LATENESS_SUM_NS = 7
    INTERVAL_ERROR_SUM_NS = 8
    POSE_LATENCY_SUM_NS = 9
    LATENESS_MAX_NS = 10
    LAST_SEND_NS = 11
    """CLOCK_MONOTONIC time of the last accepted datagram; 0 before the first."""
    LAST_DEADLINE_NS = 12
    """Deadline of that datagram."""
    SILENCED = 13
    """Datagrams that were not sent, because their flow is silent."""


class LoopStatistics(NamedTuple):
    """Counters of F flows.

    Attributes:
        counters: ``int64[F, 16]``, columns by ``Counter``.
        send_errors: ``int64[F, 134]``, counts by errno.
        lateness: ``int64[F, 512]``, histogram of the time of the kernel's acceptance minus the deadline, ns.
        interval_error: ``int64[F, 512]``, histogram of |difference of consecutive send times minus difference of their deadlines|, ns.
        pose_latency: ``int64[F, 512]``, histogram of the send time minus the time of the newest pose in the datagram, ns.
        passes: ``int64[8]``, column 0: number of turns of the loop; it increases at least every 1.4 ms while the loop runs.
        pass_ns: ``int64[8]``, column 0: CLOCK_MONOTONIC time of the last turn.
        brake: ``int64[n]``, columns by ``brake.Brake``.
    """

    counters: npt.NDArray[np.int64]
    send_errors: npt.NDArray[np.int64]
    lateness: npt.NDArray[np.int64]
    interval_error: npt.NDArray[np.int64]
    pose_latency: npt.NDArray[np.int64]
    passes: npt.NDArray[np.int64]
    pass_ns: npt.NDArray[np.int64]
    brake: npt.NDArray[np.int64]


def allocate_statistics(flows: int) -> LoopStatistics:
    """Allocate statistics for ``flows`` flows, all zero."""
    return LoopStatistics(
        counters=shared_words(Counter, flows),
        send_errors=np.zeros((flows, ERRNOS), np.int64),
        lateness=np.zeros((flows, BINS), np.int64),
        interval_error=np.zeros((flows, BINS), np.int64),
        pose_latency=np.zeros((flows, BINS), np.int64),
        passes=np.zeros(8, np.int64),
        pass_ns=np.zeros(8, np.int64),
        brake=allocate_brake(),
    )


def clear_flow(statistics: LoopStatistics, flow: int) -> None:
    """Zero one flow's row; only while the sending loop does not serve the flow."""
    for array in (statistics.counters, statistics.send_errors, statistics.lateness, statistics.interval_error, statistics.pose_latency):
        array[flow] = 0


@kernel
def bin_index(value_ns: int) -> int:
    """Bin of a duration: 0 to 15 ns exactly, then 16 bins per octave; the first below 0, the last above 2**35 ns."""
    if value_ns < _SUB_BINS:
        return max(value_ns, 0)
    shift = 0
    rest = value_ns
    for step in (32, 16, 8, 4, 2, 1):  # position of the highest bit above the four that are kept
        if rest >> (step + _SUB_BITS) != 0:
            rest >>= step
            shift += step
    if rest >= 2 * _SUB_BINS:  # values from 2**37 on shift to more than five bits
        return BINS - 1
    return min((shift + 1) * _SUB_BINS + (rest & (_SUB_BINS - 1)), BINS - 1)


def bin_upper_bounds_ns() -> npt.NDArray[np.int64]:
    """Largest duration counted in each bin, ``int64[512]``; the last bin also counts everything above."""
    index = np.arange(BINS, dtype=np.int64)
    shift = np.maximum(index // _SUB_BINS - 1, 0)
    mantissa = np.where(index < _SUB_BINS, index, _SUB_BINS + index % _SUB_BINS)
    return np.asarray(((mantissa + 1) << shift) - 1, dtype=np.int64)


def quantile_ns(histogram: npt.NDArray[np.int64], quantile: float) -> int | None:
    """Upper bound, at most 1/16 too high, of a quantile (0 to 1) of a histogram ``int64[512]``; None for an empty one."""
    require((0.0 <= quantile <= 1.0, f"quantile must be 0 to 1, got {quantile}"))
    cumulative = np.cumsum(histogram)
    total = int(cumulative[-1])
    if total == 0:
        return None
    rank = max(int(np.ceil(quantile * total)), 1)
    return int(bin_upper_bounds_ns()[int(np.searchsorted(cumulative, rank))])
