"""Rings of datagrams between producers and the sending loop: single producer, single consumer, wait-free, without the GIL.

One table contains every flow's ring, so that one kernel can merge them. ``head`` counts datagrams taken by the consumer, ``tail`` datagrams put by the producer;
both only increase, a slot is the count modulo the number of slots. Each count has a cache line of its own. Memory is page-aligned, and touched
when it is allocated, so that the first packet does not wait for a page fault.
"""

import mmap
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire, store_release
from hilsim.compilation.jit import by_reference, kernel
from hilsim.errors import require

COUNTS_PER_LINE = 8
"""Number of int64 counts in a cache line of 64 bytes."""


@by_reference
class Rings(NamedTuple):
    """Rings of F flows, S slots of C bytes each.

    Attributes:
        head: ``int64[F, 8]``, column 0: number of datagrams taken; written by the sending loop alone.
        tail: ``int64[F, 8]``, column 0: number of datagrams put; written by the flow's one producer alone.
        deadline_ns: ``int64[F, S]``, deadline of each datagram in CLOCK_MONOTONIC time.
        pose_ns: ``int64[F, S]``, CLOCK_MONOTONIC time of the newest pose used in each; 0 if unknown.
        size: ``int32[F, S]``, size of each datagram in bytes.
        payload: ``uint8[F, S, C]``, bytes of each datagram.
    """

    head: npt.NDArray[np.int64]
    tail: npt.NDArray[np.int64]
    deadline_ns: npt.NDArray[np.int64]
    pose_ns: npt.NDArray[np.int64]
    size: npt.NDArray[np.int32]
    payload: npt.NDArray[np.uint8]


def allocate_rings(flows: int, slots: int, capacity: int) -> Rings:
    """Allocate empty rings for ``flows`` flows of ``slots`` datagrams of up to ``capacity`` bytes.

    Raises:
        ValueError: a count is out of range.
    """
    require(
        (1 <= flows <= 4096, f"flows must be 1 to 4096, got {flows}"),
        (2 <= slots <= 65536, f"slots must be 2 to 65536, got {slots}"),
        (1 <= capacity <= 65535, f"capacity must be 1 to 65535 bytes, got {capacity}"),
    )
    words: npt.NDArray[np.int64] = _page_aligned(2 * flows * (COUNTS_PER_LINE + slots) * 8).view(np.int64)
    counts, times = words[: 2 * flows * COUNTS_PER_LINE], words[2 * flows * COUNTS_PER_LINE :]
    return Rings(
        head=counts[: flows * COUNTS_PER_LINE].reshape(flows, COUNTS_PER_LINE),
        tail=counts[flows * COUNTS_PER_LINE :].reshape(flows, COUNTS_PER_LINE),
        deadline_ns=times[: flows * slots].reshape(flows, slots),
        pose_ns=times[flows * slots :].reshape(flows, slots),
        size=_page_aligned(flows * slots * 4).view(np.int32).reshape(flows, slots),
        payload=_page_aligned(flows * slots * capacity).reshape(flows, slots, capacity),
    )


def _page_aligned(size_bytes: int) -> npt.NDArray[np.uint8]:
    memory = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    array = np.frombuffer(memory, dtype=np.uint8)
    array[:] = 0  # a write makes each page exist before the first packet
    return array


@kernel
def push(rings: Rings, flow: int, deadline_ns: int, pose_ns: int, payload_row: npt.NDArray[np.uint8], size: int) -> bool:
    """Put one datagram; wait-free; one producer per flow.

    Args:
        rings: Rings to put into.
        flow: Row of the flow.
        deadline_ns: Deadline in CLOCK_MONOTONIC time, not before that of the flow's previous datagram.
        pose_ns: CLOCK_MONOTONIC time of the newest pose used, 0 if none.
        payload_row: ``uint8[>= size]``, contiguous.
        size: Size in bytes, at most the rings' capacity.

    Returns:
        False, without effect, when the ring is full (or ``size`` is above its capacity).
    """
    slots = rings.deadline_ns.shape[1]
    tail = rings.tail[flow, 0]
    if tail - load_acquire(rings.head, (flow, 0)) >= slots or size > rings.payload.shape[2]:
        return False
    slot = tail % slots
    rings.deadline_ns[flow, slot] = deadline_ns
    rings.pose_ns[flow, slot] = pose_ns
    rings.size[flow, slot] = size
    for i in range(size):
        rings.payload[flow, slot, i] = payload_row[i]
    store_release(rings.tail, (flow, 0), tail + 1)
    return True


@kernel
def depth(rings: Rings, flow: int) -> int:
    """Number of datagrams put and not yet taken; any thread may call."""
    head = load_acquire(rings.head, (flow, 0))
    return load_acquire(rings.tail, (flow, 0)) - head


def clear(rings: Rings, flow: int) -> None:
    """Empty a flow's ring; only while neither its producer nor the sending loop uses it."""
    rings.head[flow, 0] = 0
    rings.tail[flow, 0] = 0
