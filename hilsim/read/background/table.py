"""Counts of distances by cell, updated while a capture is read, in memory that depends on the number of surfaces and not on time.

A distance is counted in a *bin*: the millimetre itself below 256 mm, above it the eight leading bits, so that the width of a bin is at most 1/128 of its distances
(64 mm at 10 m, 512 mm at 100 m). Beside the count a bin stores its farthest distance, to the millimetre, with its intensity, and
the sum from which the mean of its distances is computed exactly: a bin is much wider than most sensors' noise.

Firings without a return are counted too, in the bin of distance 0; they distinguish a wall from a point in the sky that an object passed.

All operations are integer additions or comparisons, so the result does not depend on order or partition of the returns. Of equal distances
the brightest one's intensity is stored, a rule that is independent of the order as well.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, inlined_kernel, kernel, signed
from hilsim.world.scene.background import BRIGHTEST, MAX_MM

BINS = 128 * 14
"""Number of bins of a cell."""
MAX_CELLS = 0xFFFFFFFE // BINS
"""Largest grid: a cell's bins are numbered with 32 bits."""
KEY, BEST, COUNT, SUM = range(4)
"""Columns of ``Rows``: key (cell and bin), farthest distance and its intensity as in ``packed``, number of returns; sum of their distances beyond
the bin's start (mm)."""
COLUMNS = 4
PACKETS, RETURNS, EMPTY, OUTSIDE, FOREIGN, USED = range(6)
"""Indices of a tally: packets decoded, returns counted, firings or points without a return, returns outside the grid, packets of another model; rows of
the table in use."""
TALLY_SIZE = 6
INTENSITY_BITS = 10
_SHIFT = np.array([lead.bit_length() for lead in range((MAX_MM >> 8) + 1)], dtype=np.uint8)
Rows = npt.NDArray[np.int64]
"""Type ``int64[n, 4]``."""
_SLOTS = 8
_LINE = 64  # bytes; a processor's cache line
_TALLY_BITS = constant(12)
_TALLY = constant((1 << 12) - 1)
_FULL = constant(0x8000_0800)
"""A slot's count and sum share one word, 12 and 20 bits. When either is half full both are moved to the hash table, whose numbers have 64 bits: rarely enough
to cost nothing, and one return adds far less than the other half."""
_FREE_KEY = constant(0xFFFFFFFF)
_MIX = constant(0x9E3779B1)  # an odd multiplier that distributes neighbouring keys over the table
_MIX_SHIFT = constant(8)
_KEY, _BEST, _COUNT, _COLUMNS = constant(KEY), constant(BEST), constant(COUNT), constant(COLUMNS)
_SUM = constant(SUM)
_BITS = constant(INTENSITY_BITS)
_N_BINS, _N_SLOTS = constant(BINS), constant(_SLOTS)
_MAX_MM, _BRIGHTEST = constant(MAX_MM), constant(BRIGHTEST)


class CellTable(NamedTuple):
    """Storage of the counts; build with ``empty_table``.

    Most cells contain a few surfaces only, and neighbouring firings belong to neighbouring cells: the first eight bins of each cell share one line
    of the processor's cache. Further bins of a cell are in a hash table, ten times slower. The position of a bin depends on the order of the
    returns; ``in_order`` does not.

    Attributes:
        slots: ``uint32[cells, 8, 2]``, for each bin: farthest distance with its intensity, then count (12 bits) and sum. Free slots are 0 and come last.
        empty: ``uint32[cells]``, firings without a return.
        spill: Hash table with open addressing: ``Rows``, n a power of two; the key of a free row has all bits set.
    """

    slots: npt.NDArray[np.uint32]
    empty: npt.NDArray[np.uint32]
    spill: Rows


def empty_table(cells: int, spill: int = 1 << 13) -> CellTable:
    """Allocate a table without counts; ``spill``, the rows of its hash table, must be a power of two."""
    memory = np.zeros(cells * _LINE + _LINE, dtype=np.uint8)
    start = -memory.ctypes.data % _LINE
    slots = memory[start : start + cells * _LINE].view(np.uint32).reshape(cells, _SLOTS, 2)
    return CellTable(slots, np.zeros(cells, dtype=np.uint32), _empty_spill(spill))


def clear(table: CellTable) -> None:
    """Set all counts to 0."""
    table.slots[:] = 0
    table.empty[:] = 0
    table.spill[:, KEY] = _FREE_KEY
    table.spill[:, BEST:] = 0


def _empty_spill(capacity: int) -> Rows:
    spill = np.zeros((capacity, COLUMNS), dtype=np.int64)
    spill[:, KEY] = _FREE_KEY
    return spill


@inlined_kernel
def _shift_of(distance_mm: int) -> int:
    """Number of low bits of a distance that its bin ignores."""
    shift: int = signed(_SHIFT[distance_mm >> 8])
    return shift


@kernel
def bin_of(distance_mm: int) -> int:
    """Bin of a distance, 0 to ``MAX_MM``."""
    shift = _shift_of(distance_mm)
    return (shift << 7) + (distance_mm >> shift)


@inlined_kernel
def bin_start(distance_mm: int) -> int:
    """Nearest distance (mm) of the bin of a distance."""
    shift = _shift_of(distance_mm)
    return distance_mm >> shift << shift


def bin_starts(distance_mm: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """``bin_start`` of an array of distances."""
    shift = _SHIFT[distance_mm >> 8]
    return np.asarray(distance_mm >> shift << shift)


@inlined_kernel
def packed(distance_mm: int, intensity: int) -> int:
    """Distance and intensity as one number, ordered by distance, then by intensity."""
    both: int = distance_mm << _BITS | intensity
    return both


@inlined_kernel
def _spill_row(spill: Rows, key: int) -> int:
    """Row of a key in the hash table, or a free row for it; there must be one."""
    last = spill.shape[0] - 1
    row: int = ((key * _MIX) >> _MIX_SHIFT) & last
    while spill[row, _KEY] != key and spill[row, _KEY] != _FREE_KEY:
        row = (row + 1) & last
    return row


@inlined_kernel
def count_return(slots: npt.NDArray[np.uint32], spill: Rows, cell: int, distance_mm: int, intensity: int) -> int:
    """Count a return of at least 1 mm; there must be a free row in the hash table. Returns the number of rows newly used: 0 or 1.

    Inlined, with the table's arrays as separate arguments, because passing an array from one compiled function to another costs more than the counting.
    """
    distance = min(distance_mm, _MAX_MM)
    best = packed(distance, min(intensity, _BRIGHTEST))
    shift = _shift_of(distance)
    beyond = distance - (distance >> shift << shift)
    # unsigned like the slots, and so is the index: for a signed one Numba tests whether it counts from the end
    line, word, other = np.uint64(cell), np.uint32(best), np.uint32(1 << (shift + _BITS))
    # those of one bin differ by less than `other`; all slots without a branch: the match is unpredictable, and a wrong prediction costs more
    place = (
        ((slots[line, 0, 0] ^ word) < other)
        + ((slots[line, 1, 0] ^ word) < other) * 2
        + ((slots[line, 2, 0] ^ word) < other) * 3
        + ((slots[line, 3, 0] ^ word) < other) * 4
        + ((slots[line, 4, 0] ^ word) < other) * 5
        + ((slots[line, 5, 0] ^ word) < other) * 6
        + ((slots[line, 6, 0] ^ word) < other) * 7
        + ((slots[line, 7, 0] ^ word) < other) * 8
    ) - 1
    if place < 0:
        place = 0
        while place < _N_SLOTS and slots[line, place, 0] != 0:
            place += 1
    tally = beyond << _TALLY_BITS | 1
    if place < _N_SLOTS:
        tally += slots[line, place, 1]
        slots[line, place, 0] = max(slots[line, place, 0], best)
        slots[line, place, 1] = tally
        if tally & _FULL == 0:
            return 0
        slots[line, place, 1] = 0
    key = cell * _N_BINS + (shift << 7) + (distance >> shift)
    row = _spill_row(spill, key)
    is_new = spill[row, _KEY] == _FREE_KEY
    spill[row, _KEY] = key
    spill[row, _BEST] = max(spill[row, _BEST], best)
    spill[row, _COUNT] += tally & _TALLY
    spill[row, _SUM] += tally >> _TALLY_BITS
    return int(is_new)


@inlined_kernel
def has_room(spill: Rows, used: int, returns: int) -> bool:
    """Whether ``returns`` further returns can be counted before the hash table must grow from ``used`` rows: at most half of it is used."""
    fits: bool = 2 * (used + returns) <= spill.shape[0]
    return fits


@kernel
def _move(source: Rows, target: Rows) -> None:
    for old in range(source.shape[0]):
        if source[old, _KEY] != _FREE_KEY:
            row = _spill_row(target, source[old, _KEY])
            target[row] = source[old]


def grown(table: CellTable) -> CellTable:
    """The same counts with a hash table of four times the capacity."""
    spill = _empty_spill(4 * len(table.spill))
    _move(table.spill, spill)
    return table._replace(spill=spill)


@kernel
def _sort_slots(slots: npt.NDArray[np.uint32]) -> int:
    """Sort each cell's slots by distance; returns the number in use."""
    used = 0
    for cell in range(slots.shape[0]):
        for place in range(_N_SLOTS):
            best, tally = slots[cell, place]
            if best == 0:
                break
            used += 1
            to = place
            while to > 0 and slots[cell, to - 1, 0] > best:
                slots[cell, to] = slots[cell, to - 1]
                to -= 1
            slots[cell, to, 0] = best
            slots[cell, to, 1] = tally
    return used


@kernel
def _merge_slots(table: CellTable, spilled: Rows, rows: Rows) -> int:
    """Write empty firings, sorted slots and sorted rows of the hash table to ``rows``, zeros before, in the order of their keys; returns their number."""
    slots, empty, _ = table
    at = taken = 0
    for cell in range(empty.size):
        if empty[cell] > 0:
            rows[at, _KEY], rows[at, _COUNT] = cell * _N_BINS, empty[cell]
            at += 1
        for place in range(_N_SLOTS):
            best, tally = slots[cell, place]
            if best == 0:
                break
            key = cell * _N_BINS + bin_of(signed(best) >> _BITS)
            while taken < spilled.shape[0] and spilled[taken, _KEY] < key:
                rows[at] = spilled[taken]
                taken += 1
                at += 1
            if taken < spilled.shape[0] and spilled[taken, _KEY] == key:  # counts moved there from a full slot
                rows[at] = spilled[taken]
                taken += 1
            rows[at, _KEY], rows[at, _BEST] = key, max(rows[at, _BEST], signed(best))
            rows[at, _COUNT] += tally & _TALLY
            rows[at, _SUM] += tally >> _TALLY_BITS
            at += 1
        while taken < spilled.shape[0] and spilled[taken, _KEY] < (cell + 1) * _N_BINS:
            rows[at] = spilled[taken]
            taken += 1
            at += 1
    return at


def in_order(table: CellTable) -> Rows:
    """All counts, in the order of their keys; the table's slots are sorted in place."""
    spilled = table.spill[table.spill[:, KEY] != _FREE_KEY]
    spilled = np.ascontiguousarray(spilled[np.argsort(spilled[:, KEY])])
    most = _sort_slots(table.slots) + len(spilled) + np.count_nonzero(table.empty)
    rows = np.zeros((most, COLUMNS), dtype=np.int64)
    used = _merge_slots(table, spilled, rows)
    return rows if used == most else rows[:used].copy()
