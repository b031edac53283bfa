"""A queue of datagrams of many flows in one order: single producer, single consumer, wait-free, without the GIL.

Replay uses one between the file reader and the playing thread. The sending loop has one per sink, which it alone fills. (``Rings`` has one
ring per flow, because the sending loop merges independent producers.)
"""

import mmap
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire, store_release
from hilsim.compilation.jit import kernel
from hilsim.errors import require

AHEAD_NS = 20_000_000
"""Longest time between putting a packet of a queue into its ring and its deadline, and so the longest delay until a pause takes effect."""


class PacketQueue(NamedTuple):
    """A packet queue of S slots of C bytes.

    Attributes:
        head: ``int64[8]``, column 0: number of datagrams taken; written by the consumer alone.
        tail: ``int64[8]``, column 0: number of datagrams put; written by the producer alone.
        time_ns: ``int64[S]``: replay: due time of each datagram; recording: its send time.
        stamp_ns: ``int64[S]``: replay: instant of the datagram's own time stamp; recording: its deadline.
        flow: ``int64[S]``: row of the datagram's flow.
        size: ``int64[S]``: size of the datagram in bytes.
        payload: ``uint8[S, C]``: bytes of the datagram.
    """

    head: npt.NDArray[np.int64]
    tail: npt.NDArray[np.int64]
    time_ns: npt.NDArray[np.int64]
    stamp_ns: npt.NDArray[np.int64]
    flow: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    payload: npt.NDArray[np.uint8]


class PacketQueues(NamedTuple):
    """Q queues of S slots of C bytes with one producer, each with a consumer of its own; the fields are those of ``PacketQueue``, one row per queue.

    Attributes:
        head: ``int64[Q, 8]``, see ``PacketQueue``.
        tail: ``int64[Q, 8]``, see ``PacketQueue``.
        time_ns: ``int64[Q, S]``, see ``PacketQueue``.
        stamp_ns: ``int64[Q, S]``, see ``PacketQueue``.
        flow: ``int64[Q, S]``, see ``PacketQueue``.
        size: ``int64[Q, S]``, see ``PacketQueue``.
        payload: ``uint8[Q, S, C]``, see ``PacketQueue``.
    """

    head: npt.NDArray[np.int64]
    tail: npt.NDArray[np.int64]
    time_ns: npt.NDArray[np.int64]
    stamp_ns: npt.NDArray[np.int64]
    flow: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    payload: npt.NDArray[np.uint8]


class TakenDatagrams(NamedTuple):
    """Copies of ``n`` datagrams taken off a packet queue; the fields are those of ``PacketQueue``.

    Attributes:
        time_ns: ``int64[n]``, see ``PacketQueue``.
        stamp_ns: ``int64[n]``, see ``PacketQueue``.
        flow: ``int64[n]``, see ``PacketQueue``.
        size: ``int64[n]``, see ``PacketQueue``.
        payload: ``uint8[n, C]``, see ``PacketQueue``.
    """

    time_ns: npt.NDArray[np.int64]
    stamp_ns: npt.NDArray[np.int64]
    flow: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    payload: npt.NDArray[np.uint8]


def allocate_packet_queue(slots: int, capacity: int) -> PacketQueue:
    """Allocate an empty packet queue for ``slots`` datagrams of up to ``capacity`` bytes, with its pages touched.

    Raises:
        ValueError: a count is out of range.
    """
    require(
        (1 <= slots <= 1 << 20, f"slots must be 1 to {1 << 20}, got {slots}"),
        (1 <= capacity <= 65535, f"capacity must be 1 to 65535 bytes, got {capacity}"),
    )
    payload = _touched(slots * capacity).reshape(slots, capacity)
    head, tail = np.zeros(8, np.int64), np.zeros(8, np.int64)
    time_ns, stamp_ns, flow, size = (np.zeros(slots, np.int64) for _ in range(4))
    return PacketQueue(head, tail, time_ns, stamp_ns, flow, size, payload)


def allocate_queues(count: int, slots: int, capacity: int) -> PacketQueues:
    """Allocate ``count`` empty queues, with their pages touched; ``count`` may be 0.

    Raises:
        ValueError: a count is out of range.
    """
    require(
        (0 <= count <= 64, f"count must be 0 to 64 queues, got {count}"),
        (1 <= slots <= 1 << 20, f"slots must be 1 to {1 << 20}, got {slots}"),
        (1 <= capacity <= 65535, f"capacity must be 1 to 65535 bytes, got {capacity}"),
    )
    head, tail = np.zeros((count, 8), np.int64), np.zeros((count, 8), np.int64)
    time_ns, stamp_ns, flow, size = (np.zeros((count, slots), np.int64) for _ in range(4))
    return PacketQueues(head, tail, time_ns, stamp_ns, flow, size, _touched(count * slots * capacity).reshape(count, slots, capacity))


def _touched(size: int) -> npt.NDArray[np.uint8]:
    """Allocate ``uint8[size]`` whose pages exist before the first packet."""
    if size == 0:
        return np.zeros(0, np.uint8)
    memory = np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), dtype=np.uint8)
    memory[:] = 0  # a write makes each page exist
    return memory


def queue_of(queues: PacketQueues, queue: int) -> PacketQueue:
    """View of one of several queues, for its consumer."""
    return PacketQueue(*(array[queue] for array in queues))


@kernel
def put_into(queues: PacketQueues, queue: int, flow: int, time_ns: int, stamp_ns: int, datagram: npt.NDArray[np.uint8], size: int) -> bool:
    """``put`` into one of several queues.

    A view of the whole queue would cost the loop the reference counts of seven arrays; a view of one slot copies the bytes as fast as ``put``.
    """
    slots, capacity = queues.payload.shape[1], queues.payload.shape[2]
    tail = queues.tail[queue, 0]
    if tail - load_acquire(queues.head, (queue, 0)) >= slots or size > capacity:
        return False
    slot = tail % slots
    queues.time_ns[queue, slot] = time_ns
    queues.stamp_ns[queue, slot] = stamp_ns
    queues.flow[queue, slot] = flow
    queues.size[queue, slot] = size
    row = queues.payload[queue, slot]
    for at in range(size):
        row[at] = datagram[at]
    store_release(queues.tail, (queue, 0), tail + 1)
    return True


@kernel
def put(queue: PacketQueue, flow: int, time_ns: int, stamp_ns: int, datagram: npt.NDArray[np.uint8], size: int) -> bool:
    """Put one datagram; wait-free; returns False without effect when the packet queue is full (or ``size`` is above its capacity).

    Args:
        queue: Queue to put into.
        flow: Row of the datagram's flow.
        time_ns: ``PacketQueue.time_ns``.
        stamp_ns: ``PacketQueue.stamp_ns``.
        datagram: ``uint8[>= size]``, contiguous.
        size: Size of the datagram in bytes.
    """
    slots, capacity = queue.payload.shape
    tail = queue.tail[0]
    if tail - load_acquire(queue.head, (0,)) >= slots or size > capacity:
        return False
    slot = tail % slots
    queue.time_ns[slot] = time_ns
    queue.stamp_ns[slot] = stamp_ns
    queue.flow[slot] = flow
    queue.size[slot] = size
    for at in range(size):
        queue.payload[slot, at] = datagram[at]
    store_release(queue.tail, (0,), tail + 1)
    return True


@kernel
def waiting(queue: PacketQueue) -> int:
    """Number of datagrams put and not yet taken; either side may call."""
    head = load_acquire(queue.head, (0,))
    return load_acquire(queue.tail, (0,)) - head


@kernel
def release(queue: PacketQueue, count: int) -> None:
    """Return ``count`` slots to the producer, after the consumer has read them."""
    store_release(queue.head, (0,), queue.head[0] + count)


def take(queue: PacketQueue, limit: int) -> TakenDatagrams:
    """Copy up to ``limit`` of the oldest datagrams off the packet queue, for a consumer in Python."""
    count = min(int(waiting(queue)), limit)
    slots = (int(queue.head[0]) + np.arange(count)) % queue.time_ns.size
    taken = TakenDatagrams(queue.time_ns[slots], queue.stamp_ns[slots], queue.flow[slots], queue.size[slots], queue.payload[slots])
    release(queue, count)
    return taken
