"""Render thread of a lidar: it runs ``streaming.render_loop``, and another render thread can take over from it between two packets."""

import threading
import time
from dataclasses import dataclass, field

import numpy as np

from hilsim.compilation.atomics import publish
from hilsim.emulator.changing.continuation import rehearse as rehearse_change
from hilsim.emulator.changing.segments import SegmentTable
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.schedule import data_deadline_ns
from hilsim.emulator.workspace import Workspace, allocate_workspace
from hilsim.errors import DeviceError, TransmitError
from hilsim.protocols.ethernet import HEADER_SIZE
from hilsim.sensor.position_stream import NEVER_NS
from hilsim.streaming.device_loop import render_ahead_on
from hilsim.streaming.obstacle_map import ObstacleMap, no_obstacle_map
from hilsim.streaming.punctuality import OUTLIER_RATIO
from hilsim.streaming.render_loop import render_ahead
from hilsim.streaming.render_state import LoopPlace, RenderCounter, RenderState, RenderStream, RenderWord, allocate_state, state_after
from hilsim.transmit.brake import is_applied
from hilsim.transmit.ring import Rings, allocate_rings
from hilsim.transmit.scheduling import ThreadSettings, apply, enter
from hilsim.world.render.renderer import DeviceRenderer

_START_POLL_S = 0.0002
_DEFAULT_LATE_LIMIT_NS = 20_000_000
_CPU_CLOCK_OF_THREAD = 6
"""CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED (include/linux/posix-timers_types.h): what ``pthread_getcpuclockid`` makes, safe when the thread has ended."""
_TURN_NS = 100_000_000
_LONG_AGO_NS = 1 << 62
_REHEARSED_PLACES = 8
_REHEARSED_PACKETS = 3
_STRETCH_PACKETS = 32
_REHEARSED_FLOWS = (0, 1)
_REHEARSAL_AHEAD_NS = 1_000_000_000_000


@dataclass(kw_only=True, eq=False)
class RenderThread:
    """A lidar's render thread.

    Attributes:
        lidar: Lidar to render.
        rings: Rings of the transmitter.
        data_flow: Row of the data flow.
        position_flow: Row of the position flow.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        lead_ns: Initial time between rendering a packet and its deadline; ``set_lead_ns`` changes it.
        settings: Scheduling of the thread.
        late_limit_ns: Largest lateness with which the sending loop still sends a datagram.
        obstacle_map: Map in which the lidar's returns are entered; None: no map.
        renderer: Device that casts the lidar's rays; None: the thread's own kernels cast them.
        fault: Error of the device that ended the thread; ``recover`` starts another one.
        can_change: Whether the lidar can be changed during rendering.
        table: Changed lidars that follow during rendering; if ``can_change``, the first entry is the lidar itself.
        state: State shared with the loop; after ``hand_over_to`` also with the successor.
        scheduling_mode: Scheduling that the thread obtained.
    """

    lidar: LidarEmulator
    rings: Rings
    data_flow: int
    position_flow: int
    epoch_ns: int
    lead_ns: int
    settings: ThreadSettings
    late_limit_ns: int = _DEFAULT_LATE_LIMIT_NS
    obstacle_map: ObstacleMap | None = None
    renderer: DeviceRenderer | None = None
    fault: DeviceError | None = None
    can_change: bool = False
    table: SegmentTable | None = None
    state: RenderState = field(default_factory=allocate_state)
    scheduling_mode: str = ""
    _thread: threading.Thread | None = None
    _entered: threading.Event = field(default_factory=threading.Event)
    _refusal: TransmitError | None = None
    _goes_on: bool = False

    def add_segment(self, from_ns: int, lidar: LidarEmulator) -> int:
        """Change the lidar from a rig time on during rendering; returns the segment's number.

        Raises:
            ValueError: the thread's lidar cannot change, or the lidar is of another kind.
        """
        if not self.can_change or self.table is None:
            raise ValueError("a render thread must run, and have can_change, for its lidar to be changed")
        return self.table.add(from_ns, lidar.plan, lidar.world, self.table.workspace_like(lidar.plan) or self._workspace(lidar.plan))

    def _workspace(self, plan: LidarPlan) -> Workspace:
        is_opaque = self.lidar.world.is_opaque and not self.can_change
        return allocate_workspace(plan, plan.sequences_per_packet, is_opaque=is_opaque, keeps_hits=False)._replace(counts=self.state.emulated)

    def start(self, *, from_ns: int = 0) -> None:
        """Start rendering; returns when the thread's scheduling is in force.

        Args:
            from_ns: Rig time from which this render thread renders packets or counts them as skipped; by default from the sensor's first packet on. A sensor
                that is added later begins at a future time.

        Raises:
            TransmitError: the scheduling demanded is not permitted.
        """
        self.set_lead_ns(self.lead_ns)
        self.state.place[LoopPlace.DATA_FROM_NS] = self.state.place[LoopPlace.POSITIONS_FROM_NS] = from_ns
        self._enter()

    def stop(self) -> None:
        """End the thread; returns within milliseconds, when it has ended."""
        publish(self.state.words, int(RenderWord.STOP), 1)
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self.table is not None:
            self.table.close()
            self.table = None

    def set_lead_ns(self, lead_ns: int) -> None:
        """Set the lead from now on; with a longer lead, all packets due within it are rendered at once."""
        self.lead_ns = lead_ns
        publish(self.state.lead, 0, lead_ns)

    def hand_over_to(self, successor: "RenderThread") -> None:
        """End this render thread, and let another one of the same rings continue with exactly the next packet.

        The successor may have another world, settings or packet headers. If its firing times differ (rate, return mode), it continues with its own first
        packets due after the last ones of this render thread. It is prepared before this one is stopped, so that the gap is only the time to wake a
        thread. Both share counters and lead.

        Raises:
            TransmitError: the successor's scheduling is not permitted; this render thread continues.
            ValueError: the successor renders for other rings or from another epoch, or this render thread does not run.
        """
        if not self.alive:
            raise ValueError("a render thread must run to be succeeded")
        mine, other = (self.data_flow, self.position_flow, self.epoch_ns), (successor.data_flow, successor.position_flow, successor.epoch_ns)
        if successor.rings is not self.rings or other != mine:
            raise ValueError(f"a successor must render for the same rows from the same epoch, {mine}, got {other}")
        successor._succeed(self)  # noqa: SLF001 - a method of the same class
        self.stop()

    def _succeed(self, former: "RenderThread") -> None:
        """Prepare to continue where another render thread ends."""
        self.warm()
        self.state = state_after(former.state)
        self.lead_ns = former.lead_ns
        self._goes_on = _schedule(self.lidar.plan) == _schedule(former.lidar.plan)
        self._enter()
        while self.state.words[RenderWord.WAITING] == 0 and self.alive:
            time.sleep(_START_POLL_S)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def covered_ns(self) -> int:
        """CLOCK_MONOTONIC time before which every due data packet is in the ring or counted as skipped."""
        return self.epoch_ns + int(data_deadline_ns(self.lidar.plan, int(self.state.counters[RenderCounter.NEXT_PACKET])))

    def warm(self) -> None:
        """Load or compile the loop's kernel and touch its arrays, without rendering anything."""
        stopped = allocate_state()
        stopped.words[RenderWord.STOP] = 1
        self._render(stopped)
        if self.can_change:
            SegmentTable(self.lidar.plan, self.lidar.world).rehearse(self._workspace(self.lidar.plan))
            rehearse_change(self.lidar.plan)
        if self.renderer is not None:
            self._rehearse(0, 1)
        self.set_lead_ns(self.lead_ns)  # loads its kernel too

    def measure(self) -> None:
        """Render some packets from all directions without sending them, before the thread starts; the CPU time of one is the first estimate.

        This takes the time of some 24 packets. The median of the places counts; time of other processes does not.
        """
        plan = self.lidar.plan
        turn = max(round(_TURN_NS / (plan.sequences_per_packet * plan.sequence_ns)), _REHEARSED_PLACES)
        firsts = [place * turn // _REHEARSED_PLACES for place in range(_REHEARSED_PLACES)]
        times_ns = [self._rehearsed_ns(first, _REHEARSED_PACKETS) // _REHEARSED_PACKETS for first in firsts]
        self.state.counters[RenderCounter.ESTIMATE_NS] = max(int(np.median(times_ns)), 1)

    def measure_stretch(self, seconds: float) -> float:
        """Render the first seconds of the stream without sending them, one packet after the other; returns the mean CPU time of one in nanoseconds.

        A host may stall a virtual machine and count that as its threads' time: such packets count as four ordinary ones each.
        """
        plan = self.lidar.plan
        packets = max(round(seconds * 1e9 / (plan.sequences_per_packet * plan.sequence_ns)), 1)
        counts = [min(_STRETCH_PACKETS, packets - first) for first in range(0, packets, _STRETCH_PACKETS)]
        taken_ns = [max(self._rehearsed_ns(number * _STRETCH_PACKETS, count), count) for number, count in enumerate(counts)]
        most_ns = OUTLIER_RATIO * float(np.median(np.divide(taken_ns, counts)))
        return sum(min(taken, most_ns * count) for taken, count in zip(taken_ns, counts, strict=True)) / packets

    def _rehearsed_ns(self, first: int, count: int) -> int:
        """CPU time of a number of packets: the loop's with them, less that of a loop without any just before, because a core's speed changes."""
        idle_ns = self._rehearse(first, 0)
        return self._rehearse(first, count) - idle_ns

    def _rehearse(self, first: int, count: int) -> int:
        """Run the loop for a number of packets that are not sent; returns its CPU time, without what starting it takes."""
        rings = allocate_rings(len(_REHEARSED_FLOWS), max(2 * count, _REHEARSED_PACKETS), self.rings.payload.shape[2])
        state = allocate_state()
        state.place[LoopPlace.DATA_FROM_NS] = data_deadline_ns(self.lidar.plan, first)
        state.place[LoopPlace.POSITIONS_FROM_NS] = NEVER_NS // 2
        publish(state.lead, 0, NEVER_NS)
        self._render(state, rings, first + count, epoch_ns=time.monotonic_ns() + _REHEARSAL_AHEAD_NS)
        return int(state.place[LoopPlace.CPU_NS])

    def successor(self, lidar: LidarEmulator) -> "RenderThread":
        """Make a render thread of another lidar for the same rings, to which this one can hand over."""
        return RenderThread(
            lidar=lidar,
            rings=self.rings,
            data_flow=self.data_flow,
            position_flow=self.position_flow,
            epoch_ns=self.epoch_ns,
            lead_ns=self.lead_ns,
            settings=self.settings,
            late_limit_ns=self.late_limit_ns,
            obstacle_map=self.obstacle_map,
            renderer=self.renderer,
            can_change=self.can_change,
        )

    def recover(self) -> "RenderThread":
        """Start a render thread without the device that has failed, which continues with exactly the next packet.

        Raises:
            TransmitError: its scheduling is not permitted; no thread renders the lidar then.
        """
        successor = self.successor(self.lidar)
        successor.renderer = None
        successor._succeed(self)  # noqa: SLF001 - a method of the same class
        self.stop()
        return successor

    def reschedule(self, settings: ThreadSettings) -> None:
        """Change the thread's scheduling; a thread that has left real-time scheduling permanently keeps its scheduling.

        Raises:
            TransmitError: the scheduling demanded is not permitted; the thread runs as before.
        """
        thread = self._thread
        if thread is not None and thread.native_id is not None and thread.is_alive() and not is_applied(self.state.brake):
            self.scheduling_mode = apply(settings, thread.native_id).mode.value
        self.settings = settings

    @property
    def cpu_ns(self) -> int | None:
        """CPU time of the thread; None while it does not run."""
        thread = self._thread
        if thread is None or thread.native_id is None:
            return None
        try:
            return time.clock_gettime_ns((~thread.native_id << 3) | _CPU_CLOCK_OF_THREAD)
        except OSError:  # the thread has ended meanwhile
            return None

    def _enter(self) -> None:
        self._entered.clear()
        self.table = SegmentTable(self.lidar.plan, self.lidar.world)
        if self.can_change:
            self.add_segment(-_LONG_AGO_NS, self.lidar)
        self._thread = threading.Thread(target=self._run, name=f"render-{self.lidar.setting.name}", daemon=True)
        self._thread.start()
        self._entered.wait()
        if self._refusal is not None:
            refusal, self._refusal = self._refusal, None
            self.stop()
            raise refusal

    def _run(self) -> None:
        try:
            self.scheduling_mode = enter(self.settings).mode.value
        except TransmitError as error:
            self._refusal = error
            return
        finally:
            self._entered.set()
        self._render(self.state)

    def _render(self, state: RenderState, rings: Rings | None = None, stop_packet: int = -1, *, epoch_ns: int | None = None) -> None:
        """Run the loop; with other rings than this render thread's own, no packet is sent."""
        lidar, used_rings = self.lidar, rings or self.rings
        data_flow, position_flow = _REHEARSED_FLOWS if rings else (self.data_flow, self.position_flow)
        obstacle_map = no_obstacle_map() if rings and self.obstacle_map else self.obstacle_map
        largest = HEADER_SIZE + max(lidar.plan.data_size, lidar.plan.info_size)
        table = self.table if state is self.state and self.table is not None else SegmentTable(lidar.plan, lidar.world)
        stream = RenderStream(
            platform=lidar.platform,
            data_framing=lidar.data_framing,
            position_framing=lidar.position_framing,
            rings=used_rings,
            data_flow=data_flow,
            position_flow=position_flow,
            epoch_ns=self.epoch_ns if epoch_ns is None else epoch_ns,
            late_limit_ns=self.late_limit_ns,
            goes_on=self._goes_on,
            stop_packet=stop_packet,
            segments=None if self.renderer else table.segments,
            state=state,
            datagram=np.zeros(max(largest, used_rings.payload.shape[2]) if self.can_change else largest, np.uint8),
            positions=np.zeros(lidar.plan.position.period_ns.size, np.int64),
        )
        if self.renderer is not None:
            self.fault = render_ahead_on(self.renderer, lidar, stream, obstacle_map)
        else:
            workspace = self._workspace(lidar.plan)._replace(counts=state.emulated)
            render_ahead(table.segments, lidar.plan, lidar.world, workspace, stream, obstacle_map)


def _produced(plan: LidarPlan) -> tuple[object, ...]:
    """Settings that determine which blocks a limited field of view lets through."""
    view = plan.field_of_view
    return (plan.origin_packet, view.start_cdeg, view.width_cdeg, *plan.head) if view is not None and view.is_limited else (plan.origin_packet,)


def _schedule(plan: LidarPlan) -> tuple[object, ...]:
    """Settings that determine the deadlines of all packets."""
    stream = plan.position
    schedules = tuple(stream.period_ns.tolist()), tuple(stream.jitter_ns.tolist()), tuple(stream.phase_ns.tolist())
    of_positions = *schedules, stream.minimum_gap_ns, stream.latency_ns, int(stream.seed), stream.stream
    return *plan.clock, plan.sequences_per_packet, plan.origin_sequence, plan.sequence_ns, plan.data_latency_ns, of_positions, *_produced(plan)
