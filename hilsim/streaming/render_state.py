"""State that a render thread's loop shares with the rest of the daemon and with its successor."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import shared_words
from hilsim.compilation.jit import by_reference
from hilsim.emulator.changing.segments import Segments
from hilsim.emulator.workspace import EmulatorCount
from hilsim.protocols.ethernet import Framing
from hilsim.transmit.brake import allocate_brake
from hilsim.transmit.ring import Rings
from hilsim.transmit.statistics import BINS
from hilsim.world.platforms.platform import Platform

_SCHEDULES_MAX = 10


class RenderCounter(IntEnum):
    """Columns of ``RenderState.counters``."""

    RENDERED = 0
    """Number of data packets rendered."""
    LATE = 1
    """Number of datagrams put into the ring after their deadline."""
    SKIPPED = 2
    """Number of data packets never rendered, because they would have been late."""
    RING_FULL = 3
    """Number of datagrams never rendered, because the ring had no room for them until they were due."""
    RENDER_SUM_NS = 4
    POSITIONS = 5
    """Number of position packets encoded."""
    NEXT_PACKET = 6
    """Index of the next data packet: all before it are in the ring, sent, or counted as skipped."""
    ESTIMATE_NS = 7
    """Running estimate of the time to render and encode a data packet; a gauge."""
    POSITIONS_SKIPPED = 8
    """Number of position packets never encoded, because they would have been late."""
    LATE_SINCE_NS = 9
    """CLOCK_MONOTONIC time since which packets have been late without a rest, 0 if they are not; a gauge."""


class RenderWord(IntEnum):
    """Columns of ``RenderState.words``, each in its own cache line."""

    STOP = 0
    """Set to 1 by any thread to end the loop after its present packet."""
    ENDED = 8
    """Set to 1 by the loop as its last action, after writing the place where it ended to ``place``."""
    WAITING = 16
    """Set to 1 by the loop when it is ready and waits only for the former loop to end."""


class LoopPlace(IntEnum):
    """Columns of ``RenderState.place``."""

    PACKET = 0
    """Index of the first data packet that the loop left to the next one."""
    DATA_FROM_NS = 1
    """Rig time from which data packets belong to the next loop, which renders them or counts them as skipped."""
    POSITIONS_FROM_NS = 2
    """Rig time from which position packets belong to the next loop."""
    FIRED_NS = 3
    """Rig time at which the last firing of the loop's packets ended; 0 before there is one."""
    CPU_NS = 4
    """CPU time of the loop, once it has ended."""
    SCHEDULES = 6
    """First of the columns with the next packet of each position schedule at the loop's end."""


@by_reference
class RenderState(NamedTuple):
    """State shared by the loop and the rest of the daemon. A loop and its successor share everything but their own ``words`` and ``brake``.

    Attributes:
        words: ``int64[n]``, words of this loop, columns by ``RenderWord``.
        before: ``words`` of the former loop, which must have ended before this one begins.
        lead: ``int64[8]``, column 0: time between rendering a packet and its deadline, in ns; any thread may change it at any time.
        counters: ``int64[n]``, columns by ``RenderCounter``; written by the running loop alone.
        emulated: ``int64[n]``, columns by ``EmulatorCount``: ``Workspace.counts`` of each loop.
        render: ``int64[512]``, histogram of the time to render and encode a data packet, bins of ``transmit.statistics``.
        place: ``int64[16]``, columns by ``LoopPlace``: where the next loop begins.
        brake: ``int64[n]``, columns by ``transmit.brake.Brake``.
    """

    words: npt.NDArray[np.int64]
    before: npt.NDArray[np.int64]
    lead: npt.NDArray[np.int64]
    counters: npt.NDArray[np.int64]
    emulated: npt.NDArray[np.int64]
    render: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    brake: npt.NDArray[np.int64]


@by_reference
class RenderStream(NamedTuple):
    """What never changes within a loop.

    Attributes:
        platform: Platform that carries the lidar.
        data_framing: Framing of data datagrams.
        position_framing: Framing of position datagrams.
        rings: Rings to fill.
        data_flow: Row of the data flow.
        position_flow: Row of the position flow.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        late_limit_ns: Largest lateness with which the sending loop still sends a datagram.
        goes_on: Whether the loop continues with exactly the packets before which the former one ended; otherwise it begins with the first ones that are due from
            the rig times in ``state.place`` on.
        stop_packet: Index of the data packet to end before; -1: none.
        segments: Changed lidars that follow by rig time, to which others may be added; None: the lidar does not change.
        state: State shared with the rest of the daemon.
        datagram: ``uint8[>= frame]``, working array.
        positions: ``int64[t]``, working array: next packet of each position schedule.
    """

    platform: Platform
    data_framing: Framing
    position_framing: Framing
    rings: Rings
    data_flow: int
    position_flow: int
    epoch_ns: int
    late_limit_ns: int
    goes_on: bool
    stop_packet: int
    segments: Segments | None
    state: RenderState
    datagram: npt.NDArray[np.uint8]
    positions: npt.NDArray[np.int64]


def allocate_state() -> RenderState:
    """Allocate the state of a loop without a former loop, all zero."""
    before = _words()
    before[RenderWord.ENDED] = 1
    return RenderState(
        words=_words(),
        before=before,
        lead=np.zeros(8, np.int64),
        counters=shared_words(RenderCounter),
        emulated=shared_words(EmulatorCount),
        render=np.zeros(BINS, np.int64),
        place=np.zeros(LoopPlace.SCHEDULES + _SCHEDULES_MAX, np.int64),
        brake=allocate_brake(),
    )


def state_after(state: RenderState) -> RenderState:
    """Make the state of a loop that continues where another ends."""
    return state._replace(words=_words(), before=state.words, brake=allocate_brake())


def _words() -> npt.NDArray[np.int64]:
    return shared_words(RenderWord)
