"""Priorities and rate limit of frames to the flight controller: never more than the line carries, never an outdated sensor sample.

A serial port accepts bytes faster than its line sends them: 4 kB and more queue up in buffers, at 115200 baud a third of a second and more. So frames are
written at the line's own rate, and the queue is kept here:

1. hilsim's own frames (heartbeats, answers, GPS), in order;
2. frames of ground stations, in order, within their share of the line;
3. the newest HIL_SENSOR; one not sent before the next is made is replaced and counted.

Over a whole second the first two are a small part of a line, so the third is never starved, however much a ground station sends. A frame that the port accepted
in part is finished first, otherwise the receiver would lose two.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import shared_words
from hilsim.compilation.jit import by_reference, kernel, stage_kernel
from hilsim.errors import require
from hilsim.protocols.mavlink.codec import write_frame
from hilsim.protocols.mavlink.frames import LARGEST_FRAME
from hilsim.protocols.mavlink.messages import HIL_SENSOR, Origin
from hilsim.transmit.libc import write_bytes
from hilsim.transmit.links.descriptors import Outcome, outcome_of
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
    """Columns of ``Outbox.counts``; they only increase."""

    FRAMES = 0
    BYTES = 1
    SAMPLES = 2
    SAMPLES_REPLACED = 3
    STATION_FRAMES = 4
    OWN_REFUSED = 5
    THROWN_AWAY = 6


class Pace(NamedTuple):
    """Rate limit of a line.

    Attributes:
        ns_per_byte: Time per byte on the line; 0 for no limit.
        ahead_ns: Maximum amount in the port's buffers, as time on the line.
        station_ns_per_byte: Time per byte from a ground station, which limits their share.
    """

    ns_per_byte: int
    ahead_ns: int
    station_ns_per_byte: int


@by_reference
class Outbox(NamedTuple):
    """Frames queued for the controller; used by one thread.

    Attributes:
        own: hilsim's own frames.
        frame: ``uint8[280]``, frame being written.
        sample: ``uint8[65]``, payload of the newest HIL_SENSOR.
        state: ``int64[8]``, working variables.
        counts: ``int64[n]``, columns by ``OutboxCount``.
    """

    own: PacketQueue
    frame: npt.NDArray[np.uint8]
    sample: npt.NDArray[np.uint8]
    state: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def allocate_outbox(own_slots: int = 64) -> Outbox:
    """Allocate an empty outbox for ``own_slots`` frames of hilsim's own."""
    shared = np.zeros(8, np.int64), shared_words(OutboxCount)
    return Outbox(allocate_packet_queue(own_slots, LARGEST_FRAME), np.zeros(LARGEST_FRAME, np.uint8), np.zeros(HIL_SENSOR.size, np.uint8), *shared)


def build_pace(*, line_bytes_per_s: float | None, station_bytes_per_s: float, ahead_ns: int = 4_000_000) -> Pace:
    """Build the rate limit of a line.

    Args:
        line_bytes_per_s: Rate of the line; None for no limit (USB, network).
        station_bytes_per_s: Share of the ground stations.
        ahead_ns: Maximum amount in the port's buffers, as time on the line; the thread must run more often than this.

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
    """Queue a frame of hilsim's own; when the queue is full, count it and return False."""
    is_taken = put(outbox.own, 0, 0, 0, frame, size)
    if not is_taken:
        outbox.counts[OutboxCount.OWN_REFUSED] += 1
    return is_taken


@kernel
def offer_sample(outbox: Outbox, payload: npt.NDArray[np.uint8]) -> None:
    """Replace the HIL_SENSOR to send next; its sequence number is assigned when it is sent, so that no number is missing."""
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
    """Copy the next frame to send into ``outbox.frame``; returns its size in bytes, 0 if the rate limit allows none."""
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
    """Write the frames that the rate limit allows.

    Args:
        outbox: Queued frames.
        stations: Frames of ground stations; this is its consumer.
        sender: Sender of HIL_SENSOR.
        descriptor: Non-blocking descriptor of the link.
        is_stream: False for UDP, where each frame is a datagram.
        now_ns: Current CLOCK_MONOTONIC time.
        pace: Rate limit of the line.

    Returns:
        An ``Outcome``: DONE when no more frames may be sent now, FULL when the port accepts no more, GONE when the link is broken.
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
    """Discard all queued frames, for example when the link is reopened: a command from before a disconnection must not be executed after it."""
    counts, state = outbox.counts, outbox.state
    own, foreign = waiting(outbox.own), waiting(stations)
    counts[OutboxCount.THROWN_AWAY] += own + foreign + state[_HAS_SAMPLE] + (1 if state[_REST_END] > state[_REST_BEGIN] else 0)
    release(outbox.own, own)
    release(stations, foreign)
    state[:] = 0
