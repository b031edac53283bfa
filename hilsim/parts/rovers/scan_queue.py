"""Queues of scans, one row per rover: single producer and single consumer each, wait-free, without the GIL."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire, store_release
from hilsim.compilation.jit import by_reference, kernel

_LINE_WORDS = 8
ANY_CYCLE = -1


class QueueWord(IntEnum):
    """Columns of ``ScanQueues.taken`` and ``ScanQueues.put``."""

    SCANS = 0
    POINTS = 1


@by_reference
class ScanQueues(NamedTuple):
    """Queues of R rovers: S scans each, which share P points.

    Attributes:
        taken: ``int64[R, 8]``, columns by ``QueueWord``: counts that only increase; written by the consumer alone.
        put: ``int64[R, 8]``, likewise; written by the producer alone.
        cycle: ``int64[R, S]``, cycle of a scan; ``ANY_CYCLE``: the next one.
        pose: ``float32[R, S, 6]``, pose of a scan.
        first: ``int64[R, S]``, number of points before the scan's.
        size: ``int64[R, S]``, number of the scan's points.
        points: ``float32[R, P, 3]``, points; a point's row is its number modulo P.
    """

    taken: npt.NDArray[np.int64]
    put: npt.NDArray[np.int64]
    cycle: npt.NDArray[np.int64]
    pose: npt.NDArray[np.float32]
    first: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    points: npt.NDArray[np.float32]


def allocate_scan_queues(rovers: int, scans: int, points: int) -> ScanQueues:
    """Allocate empty queues, with their pages touched."""
    return ScanQueues(
        taken=np.zeros((rovers, _LINE_WORDS), np.int64),
        put=np.zeros((rovers, _LINE_WORDS), np.int64),
        cycle=np.zeros((rovers, scans), np.int64),
        pose=np.full((rovers, scans, 6), 0.0, np.float32),
        first=np.zeros((rovers, scans), np.int64),
        size=np.zeros((rovers, scans), np.int64),
        points=np.full((rovers, points, 3), 0.0, np.float32),
    )


@kernel
def put_scan(queues: ScanQueues, rover: int, cycle: int, pose: npt.NDArray[np.float32], points: npt.NDArray[np.float32]) -> bool:
    """Put a scan; False, without effect, if there is no room.

    Args:
        queues: Queues to put into.
        rover: Row of the rover; the caller is its only producer.
        cycle: Cycle of the scan, or ``ANY_CYCLE``.
        pose: ``float32[6]``, pose of the scan.
        points: ``float32[n, 3]``, points of the scan.
    """
    slots, room = queues.size.shape[1], queues.points.shape[1]
    scans, begun = queues.put[rover, QueueWord.SCANS], queues.put[rover, QueueWord.POINTS]
    count = points.shape[0]
    if scans - load_acquire(queues.taken, (rover, QueueWord.SCANS)) >= slots:
        return False
    if begun + count - load_acquire(queues.taken, (rover, QueueWord.POINTS)) > room:
        return False
    slot = scans % slots
    queues.cycle[rover, slot] = cycle
    for axis in range(6):
        queues.pose[rover, slot, axis] = pose[axis]
    for place in range(count):
        row = (begun + place) % room
        for axis in range(3):
            queues.points[rover, row, axis] = points[place, axis]
    queues.first[rover, slot], queues.size[rover, slot] = begun, count
    queues.put[rover, QueueWord.POINTS] = begun + count
    store_release(queues.put, (rover, QueueWord.SCANS), scans + 1)
    return True


@kernel
def waiting_scans(queues: ScanQueues, rover: int) -> int:
    """Number of scans put and not yet taken; any thread may call."""
    taken = load_acquire(queues.taken, (rover, QueueWord.SCANS))
    return load_acquire(queues.put, (rover, QueueWord.SCANS)) - taken


@kernel
def take_scan(queues: ScanQueues, rover: int) -> None:
    """Release the oldest scan; for the consumer, after it has read it."""
    slots = queues.size.shape[1]
    scans = queues.taken[rover, QueueWord.SCANS]
    slot = scans % slots
    store_release(queues.taken, (rover, QueueWord.POINTS), queues.first[rover, slot] + queues.size[rover, slot])
    store_release(queues.taken, (rover, QueueWord.SCANS), scans + 1)
