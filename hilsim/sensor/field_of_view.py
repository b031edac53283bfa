"""Field of view of a rotating sensor: blocks whose azimuth is outside are not produced, and packets are filled across the gap.

A real unit decides by its encoder's reading, and does not flush the packet in progress at the edge
(measured in a VLP-32C's capture; the range of degrees and its meaning: VLP-16 user manual, "Field of View").
A packet's place in the stream therefore depends on how many blocks have been produced before it. They are counted window by window, a window being the
blocks of one turn; counts that were found are remembered, so that the stream is a function of time and costs a search near two edges.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference, constant, kernel
from hilsim.sensor.head import Head, head_reading_cdeg, passage_ns, turn_ns, turned
from hilsim.sensor.setup import width_deg
from hilsim.sensor.unit.encoder import Encoder, no_encoder
from hilsim.units import TURN_CDEG

_DEG_CDEG = 100
_MEMORY = 1024
"""Number of windows whose counts are remembered, a power of two."""
_TAG_BITS = 43
"""Bits of a remembered count: blocks of fifteen years."""
_NEAR = 3
"""Blocks around an edge that may lie on either side of it by the encoder's noise."""
_SIZE, _TAG, _TURN, _HALF_TURN, _SEARCHED = constant(_MEMORY), constant(_TAG_BITS), constant(TURN_CDEG), constant(TURN_CDEG // 2), constant(_NEAR)
_TURNS_PER_CDEG = 1.0 / TURN_CDEG


@by_reference
class FieldOfView(NamedTuple):
    """Kernel-side field of view; build with ``build_field_of_view``.

    Attributes:
        is_limited: Whether blocks are left out.
        start_cdeg: First reading that is produced.
        width_cdeg: Number of readings that are produced.
        block_sequences: Firing sequences of a block, or of a pair of blocks of the two returns.
        block_ns: Their duration in device time.
        origin_block: Block with which counting begins.
        first_window: Number of the first window that ends after it.
        encoder: Encoder of the head, by which blocks are left out.
        counts: ``int64[n + 1]``, remembered counts with the numbers of their windows, 0: none; the last one is the window that was looked for last.
    """

    is_limited: bool
    start_cdeg: int
    width_cdeg: int
    block_sequences: int
    block_ns: int
    origin_block: int
    first_window: int
    encoder: Encoder
    counts: npt.NDArray[np.int64]


def whole_turn() -> FieldOfView:
    """Field of view of a sensor that leaves nothing out."""
    return FieldOfView(False, 0, TURN_CDEG, 1, 1, 0, 0, no_encoder(), np.zeros(1, np.int64))  # noqa: FBT003 - fields by place


def build_field_of_view(
    field_of_view_deg: tuple[int, int], head: Head, encoder: Encoder, *, block_sequences: int, sequence_ns: int, origin_sequence: int = 0
) -> FieldOfView:
    """Build a kernel-side field of view.

    Args:
        field_of_view_deg: First and last degree, both produced, clockwise from one to the other.
        head: Head of the sensor.
        encoder: Its encoder.
        block_sequences: Firing sequences of a block.
        sequence_ns: Duration of a firing sequence in device time.
        origin_sequence: First firing sequence that is counted.
    """
    if width_deg(field_of_view_deg) == 360:
        return whole_turn()
    limited = FieldOfView(
        is_limited=True,
        start_cdeg=field_of_view_deg[0] * _DEG_CDEG,
        width_cdeg=width_deg(field_of_view_deg) * _DEG_CDEG,
        block_sequences=block_sequences,
        block_ns=block_sequences * sequence_ns,
        origin_block=0,
        first_window=0,
        encoder=encoder,
        counts=np.zeros(_MEMORY + 1, np.int64),
    )
    return begun_at(limited, head, origin_sequence)


def begun_at(view: FieldOfView, head: Head, origin_sequence: int) -> FieldOfView:
    """The field of view with counting begun at a firing sequence."""
    if not view.is_limited:
        return view
    origin = -(-origin_sequence // view.block_sequences)
    return view._replace(origin_block=origin, first_window=int(_first_window(view, head, origin)), counts=np.zeros(_MEMORY + 1, np.int64))


@kernel
def _signed_cdeg(cdeg: int) -> int:
    """An angle between half a turn back and half a turn ahead."""
    return (cdeg + _HALF_TURN) % _TURN - _HALF_TURN


@kernel
def _edge_block(view: FieldOfView, head: Head, window: int, offset_cdeg: int) -> int:
    """Block near which the head is at an edge: ``offset_cdeg`` after the beginning of a window."""
    return passage_ns(head, window + (view.start_cdeg + offset_cdeg) * _TURNS_PER_CDEG) // view.block_ns


@kernel
def _reading_cdeg(view: FieldOfView, head: Head, block: int) -> int:
    """Azimuth that a block reports, or would have reported before the sensor was switched on."""
    return head_reading_cdeg(head, view.encoder, block * view.block_ns, max(block, 0) * view.block_sequences)


@kernel
def _begin_of(view: FieldOfView, head: Head, window: int) -> int:
    """First block of a window: the one after the last that is before its beginning."""
    near = _edge_block(view, head, window, 0)
    begin = near - _SEARCHED
    for block in range(near - _SEARCHED, near + _SEARCHED + 1):
        if _signed_cdeg(_reading_cdeg(view, head, block) - view.start_cdeg) < 0:
            begin = block + 1
    return begin


@kernel
def _end_of(view: FieldOfView, head: Head, window: int) -> int:
    """The block after a window's last one: the first that is behind its end."""
    near = _edge_block(view, head, window, view.width_cdeg)
    for block in range(near - _SEARCHED, near + _SEARCHED + 1):
        if _signed_cdeg(_reading_cdeg(view, head, block) - view.start_cdeg - view.width_cdeg) >= 0:
            return block
    return near + _SEARCHED + 1


@kernel
def _first_window(view: FieldOfView, head: Head, origin_block: int) -> int:
    """Number of the first window that ends after a block."""
    window = math.floor(turned(head, origin_block * view.block_ns) - view.start_cdeg * _TURNS_PER_CDEG) - 2
    while _end_of(view, head, window) <= origin_block:
        window += 1
    return window


@kernel
def _begin_counted(view: FieldOfView, head: Head, window: int) -> int:
    """First block of a window that is counted."""
    return max(_begin_of(view, head, window), view.origin_block)


@kernel
def _count_before(view: FieldOfView, head: Head, window: int) -> int:
    """Number of blocks produced before a window, from the origin on; the window is counted from the first one."""
    counts, size = view.counts, _SIZE
    known, count = window, 0
    while known > 0:
        word = counts[known % size]
        if word >> _TAG == known // size + 1:
            count = word & ((1 << _TAG) - 1)
            break
        known -= 1
    while known < window:
        number = view.first_window + known
        count += _end_of(view, head, number) - _begin_counted(view, head, number)
        known += 1
        counts[known % size] = ((known // size + 1) << _TAG) | count
    return count


@kernel
def _window_of(view: FieldOfView, head: Head, ordinal: int) -> int:
    """The window, counted from the first one, that a block lies in; the blocks that are produced are numbered from the origin on."""
    window = int(view.counts[_SIZE])
    mean = view.width_cdeg * _TURNS_PER_CDEG * turn_ns(head) / view.block_ns
    window = max(window + int((ordinal - _count_before(view, head, window)) / mean), 0)
    while window > 0 and _count_before(view, head, window) > ordinal:
        window -= 1
    while _count_before(view, head, window + 1) <= ordinal:
        window += 1
    view.counts[_SIZE] = window
    return window


@kernel
def produced_before(view: FieldOfView, head: Head, device_ns: int) -> int:
    """Number of blocks that are produced from the origin until the last window but one that begins before a device time."""
    window = math.floor(turned(head, device_ns) - view.start_cdeg * _TURNS_PER_CDEG) - 1 - view.first_window
    return _count_before(view, head, max(window, 0))


@kernel
def produced_block(view: FieldOfView, head: Head, ordinal: int) -> int:
    """Index, since the sensor was switched on, of the ``ordinal``-th block that is produced from the origin on, 0 for the first one."""
    window = _window_of(view, head, ordinal)
    block: int = _begin_counted(view, head, view.first_window + window) + ordinal - _count_before(view, head, window)
    return block


@kernel
def write_sequences(view: FieldOfView, head: Head, ordinal: int, sequence: npt.NDArray[np.int64]) -> None:
    """Write the firing sequences of consecutive produced blocks, ``int64[blocks * block_sequences]``, from the ``ordinal``-th on."""
    window = _window_of(view, head, ordinal)
    block = _begin_counted(view, head, view.first_window + window) + ordinal - _count_before(view, head, window)
    end = _end_of(view, head, view.first_window + window)
    for row in range(0, sequence.size, view.block_sequences):
        while block >= end:
            window += 1
            block, end = _begin_counted(view, head, view.first_window + window), _end_of(view, head, view.first_window + window)
        for within in range(view.block_sequences):
            sequence[row + within] = block * view.block_sequences + within
        block += 1
