"""What goes to the flight controller, in what order and how fast: never more than the line carries, never an old sensor sample.

A serial port takes bytes faster than its line sends them: 4 kB and more wait in buffers, at 115200 baud a third of a second and more. So frames are given
to it as the line becomes free, by the line's own rate, and what waits, waits here:

1. hilsim's own frames (heartbeats, answers, GPS), in order;
2. frames of ground stations, in order, as long as they keep to their share of the line;
3. the newest HIL_SENSOR; one that was not sent when the next came is replaced and counted.

The first two of a whole second are a small part of a line, so the third is never starved, however much a ground station sends. A frame that the port took
in part is finished before anything else, or the receiver would lose two.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import shared_words
from hilsim.compilation.jit import by_reference, kernel, stage_kernel
from hilsim.errors import require
from hilsim.links.descriptors import Outcome, outcome_of
from hilsim.protocols.mavlink.codec import write_frame
from hilsim.protocols.mavlink.frames import LARGEST_FRAME
from hilsim.protocols.mavlink.messages import HIL_SENSOR, Origin
from hilsim.transmit.libc import write_bytes
from hilsim.transmit.packet_queue import PacketQueue, allocate_packet_queue, put, release, waiting
from hilsim.units import NS_PER_S

_DONE = int(Outcome.DONE)
_FULL = int(Outcome.FULL)
_STATION_BURST_BYTES = 2 * LARGEST_FRAME
_REST_BEGIN = 0
_REST_END = 1
_LINE_FREE_NS = 2
_HAS_SAMPLE = 3
_CREDIT_NS = 4
_SEEN_NS = 5


class OutboxCount(IntEnum):
    """Columns of ``Outbox.counts``; they only grow."""

    FRAMES = 0
    BYTES = 1
    SAMPLES = 2
    SAMPLES_REPLACED = 3
    STATION_FRAMES = 4
    OWN_REFUSED = 5
    THROWN_AWAY = 6


class Pace(NamedTuple):
    """How fast a line may be written.

    Attributes:
        ns_per_byte: What a byte takes on the line; 0 where the line has no rate of its own.
        ahead_ns: How much may be in the port's buffers.
        station_ns_per_byte: What a byte from a ground station costs of their share.
    """

    ns_per_byte: int
    ahead_ns: int
    station_ns_per_byte: int


@by_reference
class Outbox(NamedTuple):
    """Frames on their way to the controller; of one thread.

    Attributes:
        own: Frames of hilsim's own.
        frame: ``uint8[280]``: the frame that is being written.
        sample: ``uint8[65]``: payload of the newest HIL_SENSOR.
        state: ``int64[8]``.
        counts: ``int64[n]``, columns by ``OutboxCount``.
    """

    own: PacketQueue
    frame: npt.NDArray[np.uint8]
    sample: npt.NDArray[np.uint8]
    state: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def allocate_outbox(own_slots: int = 64) -> Outbox:
    """An empty outbox for so many frames of hilsim's own."""
    shared = np.zeros(8, np.int64), shared_words(OutboxCount)
    return Outbox(allocate_packet_queue(own_slots, LARGEST_FRAME), np.zeros(LARGEST_FRAME, np.uint8), np.zeros(HIL_SENSOR.size, np.uint8), *shared)


def build_pace(*, line_bytes_per_s: float | None, station_bytes_per_s: float, ahead_ns: int = 4_000_000) -> Pace:
    """The pace of a line.

    Args:
        line_bytes_per_s: What it carries; None where it has no rate of its own (USB, network).
        station_bytes_per_s: Share of the ground stations.
        ahead_ns: How much may wait in the port's buffers; the thread must come by more often.

    Raises:
        ValueError: a rate is not positive.
    """
    require(
        (line_bytes_per_s is None or line_bytes_per_s > 0, f"line_bytes_per_s must be positive, got {line_bytes_per_s}"),
        (station_bytes_per_s > 0, f"station_bytes_per_s must be positive, got {station_bytes_per_s}"),
        (ahead_ns >= 0, f"ahead_ns must be at least 0, got {ahead_ns}"),
    )
    return Pace(0 if line_bytes_per_s is None else round(NS_PER_S / line_bytes_per_s), ahead_ns, round(NS_PER_S / station_bytes_per_s))


@kernel
def post(outbox: Outbox, frame: npt.NDArray[np.uint8], size: int) -> bool:
    """Queue a frame of hilsim's own; False, and counted, when the queue is full."""
    is_taken = put(outbox.own, 0, 0, 0, frame, size)
    if not is_taken:
        outbox.counts[OutboxCount.OWN_REFUSED] += 1
    return is_taken


@kernel
def offer_sample(outbox: Outbox, payload: npt.NDArray[np.uint8]) -> None:
    """Make a HIL_SENSOR the one to be sent next; its sequence number is given when it is, so that none is missing."""
    outbox.counts[OutboxCount.SAMPLES_REPLACED] += outbox.state[_HAS_SAMPLE]
    for at in range(outbox.sample.size):
        outbox.sample[at] = payload[at]
    outbox.state[_HAS_SAMPLE] = 1


@kernel
def _take_from(outbox: Outbox, queue: PacketQueue) -> int:
    slot = queue.head[0] % queue.size.size
    size = min(queue.size[slot], outbox.frame.size)
    for at in range(size):
        outbox.frame[at] = queue.payload[slot, at]
    release(queue, 1)
    return int(size)


@kernel
def _next_frame(outbox: Outbox, stations: PacketQueue, sender: Origin, pace: Pace) -> int:
    """Put the frame that is next in turn into ``outbox.frame``; returns its size, 0 when none may go."""
    state, counts = outbox.state, outbox.counts
    if waiting(outbox.own) > 0:
        return _take_from(outbox, outbox.own)
    if state[_CREDIT_NS] >= 0 and waiting(stations) > 0:
        size = _take_from(outbox, stations)
        state[_CREDIT_NS] -= size * pace.station_ns_per_byte
        counts[OutboxCount.STATION_FRAMES] += 1
        return size
    if state[_HAS_SAMPLE] == 0:
        return 0
    state[_HAS_SAMPLE] = 0
    counts[OutboxCount.SAMPLES] += 1
    return write_frame(HIL_SENSOR, outbox.sample, sender, outbox.frame)


@kernel
def _earn_credit(outbox: Outbox, now_ns: int, pace: Pace) -> None:
    earned = outbox.state[_CREDIT_NS] + now_ns - outbox.state[_SEEN_NS]
    outbox.state[_CREDIT_NS] = min(earned, _STATION_BURST_BYTES * pace.station_ns_per_byte)
    outbox.state[_SEEN_NS] = now_ns


@stage_kernel
def flush(outbox: Outbox, stations: PacketQueue, sender: Origin, descriptor: int, is_stream: bool, now_ns: int, pace: Pace) -> int:  # noqa: FBT001 - a kernel's argument
    """Write what may go now.

    Args:
        outbox: What waits.
        stations: Frames of ground stations; this is its consumer.
        sender: Who sends HIL_SENSOR.
        descriptor: The link's, non-blocking.
        is_stream: False for UDP, where each frame is a datagram.
        now_ns: CLOCK_MONOTONIC.
        pace: The line's.

    Returns:
        An ``Outcome``: DONE when nothing more may go now, FULL when the port takes no more, GONE when the link is broken.
    """
    state, counts = outbox.state, outbox.counts
    _earn_credit(outbox, now_ns, pace)
    while True:
        if state[_REST_BEGIN] == state[_REST_END]:
            if state[_LINE_FREE_NS] > now_ns + pace.ahead_ns:
                return _DONE
            size = _next_frame(outbox, stations, sender, pace)
            if size == 0:
                return _DONE
            state[_REST_BEGIN] = 0
            state[_REST_END] = size
            state[_LINE_FREE_NS] = max(state[_LINE_FREE_NS], now_ns) + size * pace.ns_per_byte
            counts[OutboxCount.FRAMES] += 1
        rest = state[_REST_END] - state[_REST_BEGIN]
        result = write_bytes(descriptor, outbox.frame.ctypes.data + state[_REST_BEGIN], rest)
        outcome = outcome_of(result, is_stream)
        if outcome != _DONE:
            return outcome
        state[_REST_BEGIN] += result
        counts[OutboxCount.BYTES] += result


@kernel
def empty(outbox: Outbox, stations: PacketQueue) -> None:
    """Throw away all that waits, as when the link was opened anew: a command of before the cable was pulled must not be obeyed after."""
    counts, state = outbox.counts, outbox.state
    own, foreign = waiting(outbox.own), waiting(stations)
    counts[OutboxCount.THROWN_AWAY] += own + foreign + state[_HAS_SAMPLE] + (1 if state[_REST_END] > state[_REST_BEGIN] else 0)
    release(outbox.own, own)
    release(stations, foreign)
    state[:] = 0
