"""Objects put into many recorded packets by several threads, with the bytes that one thread gives.

What objects make of a packet depends on the packet, its times, the worlds that have begun, and the azimuth and stamp of the data packet before it. A part of
a batch starts from the worlds and the packet before the part, so parts can be worked on in any order.
"""

from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import shared_words
from hilsim.compilation.jit import kernel, signed
from hilsim.emulator.insertion.insertion import Inserter, Insertion, WorldWord, insert_recorded
from hilsim.emulator.insertion.packet import allocate_insertion_workspace
from hilsim.emulator.insertion.unit import read_firings
from hilsim.limits import INSERTED_OBJECTS

_PART = 48
"""Packets of a part: objects are met in a few directions, so parts take different times."""
_Times = npt.NDArray[np.int64]


@kernel
def insert_into(
    insertion: Insertion, frames: npt.NDArray[np.uint8], at: int, size: npt.NDArray[np.int32], stamp_ns: _Times, capture_ns: _Times, key: _Times
) -> None:
    """Put objects into consecutive packets, one row of ``frames`` each, from byte ``at`` on."""
    for row in range(size.size):
        insert_recorded(insertion, frames[row, at:], signed(size[row]), capture_ns[row], stamp_ns[row], key[row], row, None)


@kernel
def _continue_at(lane: Insertion, whole: Insertion, frames: npt.NDArray[np.uint8], at: int, size: npt.NDArray[np.int32], start: int) -> None:
    """Bring a lane to where ``whole`` would be before row ``start``, after the rows before it."""
    lane.worlds.words[:] = whole.worlds.words
    lane.workspace.recorded.state[:] = whole.workspace.recorded.state
    for row in range(start - 1, -1, -1):
        if read_firings(lane.unit, frames[row, at:], signed(size[row]), lane.workspace.recorded) > 0:
            return


class InsertionLanes:
    """Threads that put the objects of one inserter into batches of packets."""

    def __init__(self, inserter: Inserter, threads: int) -> None:
        """Work with a number of threads; with one, the caller's thread does it."""
        self._whole = inserter.insertion
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="insert") if threads > 1 else None
        self._lanes: SimpleQueue[Insertion] = SimpleQueue()
        for _ in range(threads if self._pool else 0):
            self._lanes.put(_lane_of(self._whole))

    def insert(self, frames: npt.NDArray[np.uint8], at: int, size: npt.NDArray[np.int32], *times: _Times) -> None:
        """Put objects into consecutive packets.

        Args:
            frames: ``uint8[n, capacity]``, contiguous, a packet a row, rewritten.
            at: Byte of each row at which its packet begins. A view of the packets alone would be another type, for which all kernels are compiled again.
            size: ``int32[n]``, bytes of each packet.
            times: Stamps' times, capture times and keys, ``int64[n]`` each.
        """
        if self._pool is None or size.size <= 2 * _PART:
            insert_into(self._whole, frames, at, size, *times)
            return
        insert_into(self._whole, frames[:1], at, size[:1], *(column[:1] for column in times))  # it decides when the added worlds begin
        starts = range(1, size.size, _PART)
        parts = [self._pool.submit(self._insert_part, frames, at, size, times, start) for start in starts]
        words, state = self._whole.worlds.words, self._whole.workspace.recorded.state
        for world, next_ns, counts, last_state in [part.result() for part in parts]:
            words[WorldWord.AT], words[WorldWord.NEXT_NS] = max(words[WorldWord.AT], world), max(words[WorldWord.NEXT_NS], next_ns)
            self._whole.workspace.counts[:] += counts
            state[:] = last_state

    def _insert_part(
        self, frames: npt.NDArray[np.uint8], at: int, size: npt.NDArray[np.int32], times: tuple[_Times, ...], start: int
    ) -> tuple[int, int, _Times, _Times]:
        """Put objects into the packets of a part; returns the world it ends with, the time after its firings, its counts and its last packet's state."""
        lane, part = self._lanes.get(), slice(start, start + _PART)
        try:
            _continue_at(lane, self._whole, frames, at, size, start)
            lane.workspace.counts[:] = 0
            insert_into(lane, frames[part], at, size[part], *(column[part] for column in times))
            words = lane.worlds.words
            return int(words[WorldWord.AT]), int(words[WorldWord.NEXT_NS]), lane.workspace.counts.copy(), lane.workspace.recorded.state.copy()
        finally:
            self._lanes.put(lane)


def _lane_of(whole: Insertion) -> Insertion:
    """The same objects, with words and working arrays of its own."""
    workspace = allocate_insertion_workspace(int(whole.unit.beam.share.size), INSERTED_OBJECTS.bound)
    return whole._replace(worlds=whole.worlds._replace(words=shared_words(WorldWord)), workspace=workspace)
