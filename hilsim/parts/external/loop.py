"""The receiving loop: takes messages from a socket, checks them, and commits keys ahead of the render threads; one thread, without the GIL."""

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire, shared_words, store_release
from hilsim.compilation.jit import by_reference, kernel, signed
from hilsim.parts.external.bodies import Bodies, BodyCount, extend, find_body, forget_poses, take_pose
from hilsim.parts.external.clock import build_clock, has_jumped, has_slowed, is_settled, note_arrival, restart_clock
from hilsim.parts.external.messages import DATAGRAM_SIZE, Fault, MessageKind, header_fault, message_views, read_pose
from hilsim.transmit.libc import monotonic_ns, read_bytes
from hilsim.transmit.links.descriptors import Waits, allocate_waits, await_input
from hilsim.transmit.packet_queue import PacketQueue, allocate_packet_queue, put

EARLIEST_NS = 100_000_000
"""Longest time before which a pose may arrive, beyond the delay: keys farther ahead would push those in use out of the rings."""
LONGEST_WAIT_NS = 5_000_000
_WINDOW = 64
_MAX_STEP = 1 << 16
"""Distance of a sequence number from the one before at which counting begins anew: minutes of lost datagrams, or a number that is none of the sender's."""
DECLARATIONS = 16
"""Messages of objects that wait to be handled."""


class LoopWord(IntEnum):
    """Columns of the loop's words."""

    STOP = 0
    HAS_SENDER = 1
    SENDER = 2
    SEQUENCE = 3
    ARRIVED_NS = 4
    FOLLOWS = 5
    """Whether bodies follow their poses."""
    EXTENDED_NS = 6
    SEEN = 7
    """Bit n: whether the datagram n before the newest one has come."""


class LoopCount(IntEnum):
    """Columns of the loop's counts."""

    MESSAGES = 0
    MALFORMED = 1
    REFUSED_POSES = 2
    UNKNOWN = 3
    STRANGERS = 4
    LOST = 5
    REORDERED = 6
    RESTARTS = 7
    STALLS = 8
    UNDECLARED = 9


class ClockKind(IntEnum):
    """Clock of the time in messages."""

    SENDER = 0
    MONOTONIC = 1
    UTC = 2


_STOP, _HAS_SENDER, _SENDER, _SEQUENCE, _ARRIVED, _FOLLOWS, _EXTENDED, _SEEN = map(int, LoopWord)
_MESSAGES, _MALFORMED, _REFUSED, _UNKNOWN, _STRANGERS, _LOST, _REORDERED, _RESTARTS, _STALLS, _UNDECLARED = map(int, LoopCount)
_SENDER_CLOCK, _UTC_CLOCK = int(ClockKind.SENDER), int(ClockKind.UTC)
_POSES_KIND, _REMOVE_KIND, _BYE_KIND = int(MessageKind.POSES), int(MessageKind.REMOVE), int(MessageKind.BYE)
_EARLY = int(BodyCount.EARLY)
_FAULTS = len(Fault)


@by_reference
class Receiver(NamedTuple):
    """Arrays and settings of the receiving loop.

    Attributes:
        words: ``int64[8]``, ``LoopWord``.
        counts: ``int64[16]``, ``LoopCount``.
        faults: ``int64[16]``, number of datagrams and records with each ``Fault``.
        clock: Words of ``external.clock``.
        clock_kind: ``ClockKind``.
        bodies: Bodies that are moved.
        buffer: ``uint8[DATAGRAM_SIZE + 8]``, the datagram: longer ones are noticed.
        header: Its header.
        poses: Its records.
        state: ``float64[13]``, scratch.
        waits: Memory for waiting.
        declarations: Messages of objects, for Python.
    """

    words: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    faults: npt.NDArray[np.int64]
    clock: npt.NDArray[np.int64]
    clock_kind: int
    bodies: Bodies
    buffer: npt.NDArray[np.uint8]
    header: npt.NDArray[Any]
    poses: npt.NDArray[Any]
    state: npt.NDArray[np.float64]
    waits: Waits
    declarations: PacketQueue


def build_receiver(bodies: Bodies, clock: ClockKind) -> Receiver:
    """Allocate a receiver of poses for bodies."""
    buffer = np.zeros(DATAGRAM_SIZE + 8, np.uint8)
    header, poses = message_views(buffer)
    return Receiver(
        words=shared_words(LoopWord),
        counts=shared_words(LoopCount),
        faults=np.zeros(16, np.int64),
        clock=build_clock(),
        clock_kind=int(clock),
        bodies=bodies,
        buffer=buffer,
        header=header,
        poses=poses,
        state=np.zeros(13),
        waits=allocate_waits(),
        declarations=allocate_packet_queue(DECLARATIONS, DATAGRAM_SIZE + 8),
    )


@kernel
def _is_stranger(receiver: Receiver, sender: int, now_ns: int) -> bool:
    """Whether a datagram is from another sender than the present one, which is not silent; a sender that follows a silent one becomes the present one."""
    words = receiver.words
    if words[_HAS_SENDER] != 0 and words[_SENDER] == sender:
        return False
    if words[_HAS_SENDER] != 0 and now_ns - words[_ARRIVED] <= receiver.bodies.extrapolate_ns:
        return True
    if words[_HAS_SENDER] != 0:
        receiver.counts[_RESTARTS] += 1
    restart_clock(receiver.clock)
    forget_poses(receiver.bodies)
    words[_HAS_SENDER] = 1
    words[_SENDER] = sender
    words[_SEQUENCE] = -1
    return False


@kernel
def _note_sequence(receiver: Receiver, sequence: int) -> None:
    """Count datagrams that come after a later one, and those that have not come when the 64th after them does.

    One that is farther than ``_MAX_STEP`` from the last one is counted as reordered, and counting begins anew with it.
    """
    words = receiver.words
    step = (sequence - words[_SEQUENCE]) & 0xFFFFFFFF
    if words[_SEQUENCE] < 0:
        words[_SEEN] = -1
        step = 1
    elif min(step, -step & 0xFFFFFFFF) > _MAX_STEP:
        receiver.counts[_REORDERED] += 1
        words[_SEEN] = -1
        step = 1
    if step == 0 or step >= 1 << 31:
        receiver.counts[_REORDERED] += 1
        before = -step & 0xFFFFFFFF
        if before < _WINDOW:
            words[_SEEN] |= np.int64(1) << before
        return
    receiver.counts[_LOST] += max(step - _WINDOW, 0)
    for _ in range(min(step, _WINDOW)):
        if words[_SEEN] >= 0:  # the bit that leaves is 0
            receiver.counts[_LOST] += 1
        words[_SEEN] = words[_SEEN] << 1
    words[_SEEN] |= 1
    words[_SEQUENCE] = sequence


@kernel
def take_message(receiver: Receiver, size: int, now_ns: int, utc_epoch_ns: int, epoch_ns: int) -> None:  # noqa: C901 - one check after the other
    """Take the datagram in the buffer.

    Args:
        receiver: The receiver.
        size: Size of the datagram in bytes.
        now_ns: Rig time of its arrival.
        utc_epoch_ns: UTC of rig time 0.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
    """
    words, counts, bodies = receiver.words, receiver.counts, receiver.bodies
    counts[_MESSAGES] += 1
    fault = header_fault(receiver.header, size)
    if fault != 0:
        counts[_MALFORMED] += 1
        receiver.faults[fault] += 1
        return
    head = receiver.header[0]
    if _is_stranger(receiver, signed(head["sender"]), now_ns):
        counts[_STRANGERS] += 1
        return
    words[_ARRIVED] = now_ns
    _note_sequence(receiver, signed(head["sequence"]))
    kind, records, stamp_ns = signed(head["kind"]), signed(head["count"]), signed(head["time_ns"])
    if kind == _BYE_KIND:
        words[_HAS_SENDER] = 0
        return
    if kind != _POSES_KIND:
        if kind <= _REMOVE_KIND and not put(receiver.declarations, 0, now_ns, stamp_ns, receiver.buffer, size):
            counts[_UNDECLARED] += 1
        return
    if receiver.clock_kind == _SENDER_CLOCK:
        if has_jumped(receiver.clock, stamp_ns, now_ns) or has_slowed(receiver.clock, stamp_ns, now_ns):
            counts[_RESTARTS] += 1
            restart_clock(receiver.clock)
            forget_poses(bodies)
        time_ns = note_arrival(receiver.clock, stamp_ns, now_ns)
        words[_FOLLOWS] = is_settled(receiver.clock, now_ns)
    else:
        time_ns = stamp_ns - (utc_epoch_ns if receiver.clock_kind == _UTC_CLOCK else epoch_ns)
        words[_FOLLOWS] = 1
    time_ns += bodies.delay_ns
    if time_ns > now_ns + bodies.delay_ns + EARLIEST_NS:
        bodies.counts[_EARLY] += records
        return
    row = -1
    for record in range(records):
        fault = read_pose(receiver.poses, record, receiver.state)
        if fault != 0:
            counts[_REFUSED] += 1
            receiver.faults[fault] += 1
            continue
        row = find_body(bodies, signed(receiver.poses[record]["id"]), row + 1)
        if row < 0:
            counts[_UNKNOWN] += 1
            continue
        take_pose(bodies, row, time_ns, signed(receiver.poses[record]["flags"]), receiver.state, now_ns, words[_FOLLOWS] != 0)


@kernel
def receive_poses(receiver: Receiver, descriptor: int, wake_descriptor: int, epoch_ns: int, utc_epoch_ns: int) -> None:
    """Receive until ``LoopWord.STOP`` is set.

    Args:
        receiver: The receiver.
        descriptor: Descriptor of a bound socket that does not block.
        wake_descriptor: Eventfd that ends a wait.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        utc_epoch_ns: UTC of rig time 0.
    """
    words, bodies = receiver.words, receiver.bodies
    needed_ns = 0
    while load_acquire(words, (_STOP,)) == 0:
        now_ns = monotonic_ns() - epoch_ns
        size = read_bytes(descriptor, receiver.buffer.ctypes.data, receiver.buffer.size)
        if size >= 0:
            take_message(receiver, size, now_ns, utc_epoch_ns, epoch_ns)
        if needed_ns != 0 and now_ns > needed_ns + bodies.margin_ns:
            receiver.counts[_STALLS] += 1  # firings may have been rendered beyond the newest key
        if size < 0 or now_ns >= needed_ns:  # what has arrived is taken first
            needed_ns = extend(bodies, now_ns, words[_FOLLOWS] != 0, receiver.state)
            store_release(words, (_EXTENDED,), now_ns)
        if size < 0:
            await_input(receiver.waits, descriptor, wake_descriptor, min(max(needed_ns - now_ns, 0), LONGEST_WAIT_NS))
