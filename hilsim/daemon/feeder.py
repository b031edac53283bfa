"""The thread that renders one lidar just ahead of its deadlines: a kernel loop without the GIL.

It sleeps until ``lead`` before the next packet's deadline, renders it from the poses of that moment, and puts it into the flow's ring. When it
has fallen behind (a stall of the whole machine), it skips to the first packet it can still make and counts the rest.
"""

import threading
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim._atomics import load_acquire, publish
from hilsim._jit import constant, kernel
from hilsim.bridge.lookout import Lookout, no_lookout, note_packet
from hilsim.emulator.fused import render_data_packet, render_info_packet
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.position import position_deadline_ns
from hilsim.emulator.response import respond
from hilsim.emulator.schedule import data_deadline_ns, first_packet_due
from hilsim.emulator.shots import Shots, allocate_shots
from hilsim.packets.ethernet import HEADER_SIZE, Framing
from hilsim.scene.world import World
from hilsim.sensor.clock import device_from_rig
from hilsim.sensor.position_stream import next_position, seek_positions
from hilsim.transmit.libc import monotonic_ns, sleep_until
from hilsim.transmit.ring import Rings, push
from hilsim.transmit.scheduling import ThreadSettings, enter
from hilsim.transmit.statistics import BINS, bin_index
from hilsim.vehicle.carrier import Carrier

_LONGEST_SLEEP_NS = 1_000_000
_HOPELESS_NS = 20_000_000
_NONE = constant(0)


class FeederCounter(IntEnum):
    """Columns of ``FeederState.counters``."""

    RENDERED = 0
    """Data packets rendered."""
    LATE = 1
    """Datagrams put into the ring after their deadline."""
    SKIPPED = 2
    """Data packets never rendered, to catch up."""
    RING_FULL = 3
    """Datagrams the ring had no room for."""
    RENDER_SUM_NS = 4
    POSITIONS = 5
    """Position packets encoded."""
    NEXT_PACKET = 6
    """Index of the next data packet."""
    UNSAID = 7
    """Returns that the packet format cannot say, sent as no return."""


class FeederState(NamedTuple):
    """What the loop and the rest of the daemon share.

    Attributes:
        stop: ``int64[8]``, column 0: set to 1 to end the loop.
        counters: ``int64[16]``, columns by ``FeederCounter``, written by the loop alone.
        render: ``int64[512]``, histogram of the time to render and encode a data packet, bins of ``transmit.statistics``.
    """

    stop: npt.NDArray[np.int64]
    counters: npt.NDArray[np.int64]
    render: npt.NDArray[np.int64]


def allocate_state() -> FeederState:
    """All zero."""
    return FeederState(stop=np.zeros(8, np.int64), counters=np.zeros(16, np.int64), render=np.zeros(BINS, np.int64))


@kernel
def feed(
    plan: LidarPlan,
    carrier: Carrier,
    world: World,
    data_framing: Framing,
    position_framing: Framing,
    rings: Rings,
    data_flow: int,
    position_flow: int,
    epoch_ns: int,
    lead_ns: int,
    state: FeederState,
    shots: Shots,
    lookout: Lookout,
    datagram: npt.NDArray[np.uint8],
    positions: npt.NDArray[np.int64],
) -> None:
    """Feed both rings of a lidar until told to stop.

    Args:
        plan: The lidar.
        carrier: What carries it.
        world: What it sees.
        data_framing: Bytes of data datagrams.
        position_framing: Bytes of position datagrams.
        rings: Where to.
        data_flow: Row of the data flow.
        position_flow: Row of the position flow.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        lead_ns: How long before its deadline a packet is rendered.
        state: Shared.
        shots: Working arrays.
        lookout: Told what each packet says, once it is on its way.
        datagram: ``uint8[>= frame]``, working array.
        positions: ``int64[t]``, working array: next packet of each position train.
    """
    position_latency_ns = plan.position.latency_ns + plan.data_latency_ns
    seek = True
    packet = 0
    while load_acquire(state.stop, (0,)) == 0:
        if seek:
            soonest_ns = monotonic_ns() - epoch_ns + lead_ns // 2
            reached = first_packet_due(plan, soonest_ns)
            if state.counters[FeederCounter.RENDERED] > 0:
                state.counters[FeederCounter.SKIPPED] += reached - packet
            packet = reached
            seek_positions(plan.position, max(device_from_rig(plan.clock, soonest_ns - position_latency_ns), 0), positions)
            seek = False
        data_due_ns = epoch_ns + data_deadline_ns(plan, packet)
        train, position_ns = next_position(plan.position, positions)
        position_due_ns = epoch_ns + position_deadline_ns(plan, position_ns)
        due_ns = min(data_due_ns, position_due_ns)
        now_ns = monotonic_ns()
        wait_ns = due_ns - lead_ns - now_ns
        if wait_ns > 0:  # a near start is waited for in one go: one wake-up a packet
            sleep_until(now_ns + (wait_ns if wait_ns < 2 * _LONGEST_SLEEP_NS else _LONGEST_SLEEP_NS))
            continue
        if now_ns > due_ns + _HOPELESS_NS:
            seek = True
            continue
        if data_due_ns <= position_due_ns:
            size = render_data_packet(plan, carrier, world, data_framing, packet, shots, datagram)
            done_ns = monotonic_ns()
            put = push(rings, data_flow, due_ns, now_ns, datagram, size)
            packet += 1
            state.counters[FeederCounter.RENDERED] += 1
            state.counters[FeederCounter.RENDER_SUM_NS] += done_ns - now_ns
            state.counters[FeederCounter.NEXT_PACKET] = packet
            state.counters[FeederCounter.UNSAID] = shots.unsaid[0]
            state.render[bin_index(done_ns - now_ns)] += 1
            note_packet(lookout, plan, carrier.live, shots)
        else:
            index = _NONE
            for other in range(positions.size):
                index += positions[other]
            size = render_info_packet(plan, carrier, position_framing, index, position_ns, datagram)
            done_ns = monotonic_ns()
            put = push(rings, position_flow, due_ns, now_ns, datagram, size)
            positions[train] += 1
            state.counters[FeederCounter.POSITIONS] += 1
        if not put:
            state.counters[FeederCounter.RING_FULL] += 1
        if done_ns > due_ns:
            state.counters[FeederCounter.LATE] += 1


@dataclass(kw_only=True, eq=False)
class Feeder:
    """A lidar's feeder thread.

    Attributes:
        lidar: What it renders.
        rings: Of the transmitter.
        data_flow: Row of the data flow.
        position_flow: Row of the position flow.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        lead_ns: How long before its deadline a packet is rendered.
        settings: Scheduling of the thread.
        lookout: Told what is near the vehicle that carries the lidar.
    """

    lidar: LidarEmulator
    rings: Rings
    data_flow: int
    position_flow: int
    epoch_ns: int
    lead_ns: int
    settings: ThreadSettings
    lookout: Lookout = field(default_factory=no_lookout)
    state: FeederState = field(default_factory=allocate_state)
    scheduling_mode: str = ""
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to render."""
        self._thread = threading.Thread(target=self._run, name=f"feed-{self.lidar.setting.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; returns when it has ended, within milliseconds."""
        publish(self.state.stop, 0, 1)
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def warm(self) -> None:
        """Load or compile the loop's kernel and touch its arrays, without rendering anything."""
        stopped = allocate_state()
        stopped.stop[0] = 1
        self._feed(stopped)

    def warm_stages(self) -> None:
        """Load or compile what follows the casting of rays, while another process may compile what comes before."""
        plan = self.lidar.plan
        sequences = plan.sequences_per_packet
        shots = allocate_shots(plan, sequences, is_opaque=True)
        respond(plan, 0, sequences, shots)
        counters = np.zeros(plan.position.period_ns.size, np.int64)
        first_packet_due(plan, 0)
        seek_positions(plan.position, 0, counters)
        next_position(plan.position, counters)
        position_deadline_ns(plan, 0)

    def _run(self) -> None:
        self.scheduling_mode = enter(self.settings).mode.value
        self._feed(self.state)

    def _feed(self, state: FeederState) -> None:
        lidar = self.lidar
        feed(
            lidar.plan,
            lidar.carrier,
            lidar.world,
            lidar.data_framing,
            lidar.position_framing,
            self.rings,
            self.data_flow,
            self.position_flow,
            self.epoch_ns,
            self.lead_ns,
            state,
            allocate_shots(lidar.plan, lidar.plan.sequences_per_packet, is_opaque=lidar.world.is_opaque),
            self.lookout,
            np.zeros(HEADER_SIZE + max(lidar.plan.data_size, lidar.plan.info_size), np.uint8),
            np.zeros(lidar.plan.position.period_ns.size, np.int64),
        )
