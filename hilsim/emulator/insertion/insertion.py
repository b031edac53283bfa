"""Objects in the stream of a recorded unit: worlds by rig time, which a running player reads by their addresses."""

from collections import deque
from enum import IntEnum
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire, publish, shared_words, store_release
from hilsim.compilation.jit import by_reference, constant, kernel
from hilsim.compilation.pins import Pin, tuple_at
from hilsim.emulator.insertion.packet import InsertionCount, InsertionWorkspace, allocate_insertion_workspace, insert_objects, note_inserted
from hilsim.emulator.insertion.unit import RecordedUnit
from hilsim.emulator.truth import Truth
from hilsim.limits import INSERTED_OBJECTS
from hilsim.world.geometry.tracks import PoseTrack
from hilsim.world.scene.world import World

CAPACITY = 256
"""Worlds that have been added and not begun, at most; a power of two."""

_MASK, _ONE = constant(CAPACITY - 1), constant(1)
_PACKET_NS = constant(10_000_000)  # no data packet's firings are so far from its stamp
_ALWAYS_NS = constant(1 << 62)


class WorldWord(IntEnum):
    """Columns of ``InsertedWorlds.words``: each has a cache line of its own."""

    ADDED = 0
    """Number of added worlds; written by Python."""
    SEEN = 8
    """Number of worlds whose beginning the kernel has decided."""
    AT = 16
    """Number of the world that the kernel uses, counted from 0; -1 before the first one begins. The kernel uses none before it any more."""
    NEXT_NS = 24
    """Rig time after all firings that have been rewritten."""


class InsertedWorlds(NamedTuple):
    """Worlds of a recorded stream; world ``k`` is in row ``k % CAPACITY``.

    Attributes:
        words: ``int64[n]``, columns by ``WorldWord``.
        from_ns: ``int64[CAPACITY]``, rig time at which the world begins.
        begun_ns: ``int64[CAPACITY]``, written by the kernel: when it begins, later than that where it was added too late.
        world: ``int64[CAPACITY]``, address of the ``World``.
    """

    words: npt.NDArray[np.int64]
    from_ns: npt.NDArray[np.int64]
    begun_ns: npt.NDArray[np.int64]
    world: npt.NDArray[np.int64]


@by_reference
class Insertion(NamedTuple):
    """Objects in one recorded unit's stream.

    Attributes:
        unit: The unit.
        track: World from carrier, over capture time.
        world: World of the beginning; every object of it is a mover.
        worlds: Later worlds.
        workspace: Working arrays.
        rig_epoch_ns: ``int64[1]``, time of rig time 0 on the clock by which packets are placed.
    """

    unit: RecordedUnit
    track: PoseTrack
    world: World
    worlds: InsertedWorlds
    workspace: InsertionWorkspace
    rig_epoch_ns: npt.NDArray[np.int64]


@kernel
def _begin_worlds(worlds: InsertedWorlds, start_ns: int) -> int:
    """Decide when worlds begin that were added since the packet before; returns the number of the world of rig time ``start_ns``."""
    words, at = worlds.words, worlds.words[16]
    added, seen = load_acquire(words, (0,)), words[8]
    while seen < added:
        row = seen & _MASK
        earlier_ns = worlds.begun_ns[(seen - 1) & _MASK] if seen > 0 else worlds.from_ns[row]
        worlds.begun_ns[row] = max(worlds.from_ns[row], words[24], earlier_ns)
        seen += _ONE
        store_release(words, (8,), seen)
    while at + 1 < added and worlds.begun_ns[(at + 1) & _MASK] <= start_ns:
        at += 1
    store_release(words, (16,), at)
    return int(at)


@kernel
def insert_recorded(
    insertion: Insertion, payload: npt.NDArray[np.uint8], size: int, capture_ns: int, at_ns: int, key: int, packet: int, truth: Truth | None
) -> int:
    """Put the objects of their time into the next packet of a recorded stream.

    Args:
        insertion: The objects.
        payload: ``uint8[>= size]``, the packet, rewritten.
        size: Bytes of the packet.
        capture_ns: Capture time of the packet's stamp.
        at_ns: The stamp's time on the clock of ``rig_epoch_ns``.
        key: A number of its own for each packet of the stream.
        packet: Index of the packet, for ``truth``.
        truth: Written: a row for each return that an object made; None: the kernel is compiled without.

    Returns:
        Number of rows of ``truth``.
    """
    rig_ns = at_ns - insertion.rig_epoch_ns[0]
    worlds = insertion.worlds
    at = _begin_worlds(worlds, rig_ns - _PACKET_NS)
    known = worlds.words[8]
    begin_ns, rows = -_ALWAYS_NS, 0
    while True:
        stop_ns = worlds.begun_ns[(at + 1) & _MASK] if at + 1 < known else _ALWAYS_NS
        world = insertion.world if at < 0 else tuple_at(worlds.world[at & _MASK], insertion.world)
        insert_objects(insertion.unit, insertion.track, world, capture_ns, rig_ns, begin_ns, stop_ns, key, payload, size, insertion.workspace)
        if truth is not None:
            rows = note_inserted(insertion.unit, world, rig_ns, packet, payload, insertion.workspace, truth, rows)
        if stop_ns > rig_ns + _PACKET_NS:
            break
        begin_ns = stop_ns
        at += 1
    recorded = insertion.workspace.recorded
    last_ns = recorded.time_ns[recorded.state[3] - 1] if recorded.state[3] > 0 else 0
    store_release(worlds.words, (24,), max(worlds.words[24], rig_ns + last_ns + _ONE))
    return rows


class Inserter:
    """Objects in one recorded unit's stream, and the worlds that are added while it plays.

    Attributes:
        insertion: For the kernel.
    """

    def __init__(self, unit: RecordedUnit, track: PoseTrack, world: World) -> None:
        """Insert the objects of ``world``, each of which is a mover, into the stream of ``unit`` on ``track``."""
        self.insertion = Insertion(
            unit=unit,
            track=track,
            world=world,
            worlds=InsertedWorlds(shared_words(WorldWord), *(np.zeros(CAPACITY, np.int64) for _ in range(3))),
            workspace=allocate_insertion_workspace(int(unit.beam.share.size), INSERTED_OBJECTS.bound),
            rig_epoch_ns=np.zeros(1, np.int64),
        )
        self.insertion.worlds.words[WorldWord.AT] = -1
        self._pins: deque[tuple[int, Pin]] = deque()

    @property
    def next_ns(self) -> int:
        """Rig time after all firings that have been rewritten."""
        return int(self.insertion.worlds.words[WorldWord.NEXT_NS])

    @property
    def has_room(self) -> bool:
        """Whether another world may be added now: worlds that have begun are removed."""
        words = self.insertion.worlds.words
        return int(words[WorldWord.ADDED] - max(words[WorldWord.AT], 0)) < CAPACITY

    def count(self, what: InsertionCount) -> int:
        """Count of one kind since the beginning."""
        return int(self.insertion.workspace.counts[what])

    def add(self, from_ns: int, world: World) -> int:
        """Let another world begin at a rig time, behind all others; returns its number.

        Raises:
            ValueError: the table is full, or the world is of other types.
        """
        if numba.typeof(world) != numba.typeof(self.insertion.world):
            raise ValueError("a world must be of the types of the first one, got others")
        self.release_passed()
        if not self.has_room:
            raise ValueError(f"at most {CAPACITY - 1} worlds may wait for their beginning, got one more")
        worlds = self.insertion.worlds
        number = int(worlds.words[WorldWord.ADDED])
        pin = Pin(world)
        self._pins.append((number, pin))
        worlds.from_ns[number % CAPACITY], worlds.world[number % CAPACITY] = from_ns, pin.address
        publish(worlds.words, int(WorldWord.ADDED), number + 1)
        return number

    def begun_ns(self, number: int) -> int | None:
        """Rig time at which a world begins; None until the kernel has seen it."""
        worlds = self.insertion.worlds
        return int(worlds.begun_ns[number % CAPACITY]) if worlds.words[WorldWord.SEEN] > number else None

    def release_passed(self) -> None:
        """Release the worlds that the kernel does not use any more."""
        while self._pins and self._pins[0][0] < self.insertion.worlds.words[WorldWord.AT]:
            self._pins.popleft()[1].release()

    def close(self) -> None:
        """Release everything; no kernel may use the worlds any more."""
        for _, pin in self._pins:
            pin.release()
        self._pins.clear()
