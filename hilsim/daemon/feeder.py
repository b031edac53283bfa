"""The thread that renders one lidar just ahead of its deadlines: a kernel loop without the GIL.

It sleeps until ``lead`` before the next packet's deadline, renders it from the poses of that moment, and puts it into the flow's ring. When the
ring is full it waits. When it has fallen behind it renders what can still be in time (``punctuality``), and counts the rest.
"""

import threading
import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hilsim._atomics import load_acquire, publish, store_release
from hilsim._jit import constant, inlined_kernel, kernel
from hilsim.bridge.lookout import Lookout, no_lookout, note_packet
from hilsim.daemon.feeder_state import FeederCounter, FeederState, FeederWord, Place, allocate_state, state_after
from hilsim.daemon.punctuality import earliest_due_ns, lead_in_force_ns, next_estimate_ns
from hilsim.emulator.fused import render_data_packet, render_info_packet
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.position import position_deadline_ns
from hilsim.emulator.response import respond
from hilsim.emulator.schedule import data_deadline_ns, first_packet_due
from hilsim.emulator.shots import Shots, allocate_shots
from hilsim.errors import TransmitError
from hilsim.packets.ethernet import HEADER_SIZE, Framing
from hilsim.scene.world import World
from hilsim.sensor.clock import device_from_rig
from hilsim.sensor.position_stream import NEVER_NS, next_position, seek_positions
from hilsim.transmit.brake import doze_until, is_applied
from hilsim.transmit.libc import monotonic_ns
from hilsim.transmit.ring import Rings, allocate_rings, depth, push
from hilsim.transmit.scheduling import ThreadSettings, apply, enter
from hilsim.transmit.statistics import bin_index
from hilsim.vehicle.carrier import Carrier

_LONGEST_SLEEP_NS = 1_000_000
_HAND_OVER_POLL_NS = 20_000
_START_POLL_S = 0.0002
_DEFAULT_LATE_LIMIT_NS = 20_000_000
_CPU_CLOCK_OF_THREAD = 6
"""CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED (include/linux/posix-timers_types.h): what ``pthread_getcpuclockid`` makes, safe when the thread has ended."""
_TURN_NS = 100_000_000
_REHEARSED_PLACES = 8
_REHEARSED_PACKETS = 3
_REHEARSAL_AHEAD_NS = 1_000_000_000_000
_NONE = constant(0)


@inlined_kernel
def _seek_positions(plan: LidarPlan, from_ns: int, positions: npt.NDArray[np.int64]) -> None:
    """Set ``positions`` to each train's first packet that is due at or after rig time ``from_ns``."""
    latency_ns = plan.position.latency_ns + plan.data_latency_ns
    seek_positions(plan.position, max(device_from_rig(plan.clock, from_ns - latency_ns) - 2, 0), positions)
    train, position_ns = next_position(plan.position, positions)
    while positions.size > 0 and position_deadline_ns(plan, position_ns) < from_ns:
        positions[train] += 1
        train, position_ns = next_position(plan.position, positions)


@inlined_kernel
def _begin(plan: LidarPlan, state: FeederState, goes_on: int, positions: npt.NDArray[np.int64]) -> int:
    """Index of the first data packet, and in ``positions`` of the first position packets, that are this loop's."""
    place = state.place
    packet = int(place[Place.PACKET])
    if goes_on != 0:
        for train in range(positions.size):
            positions[train] = place[Place.TRAINS + train]
    else:
        packet = first_packet_due(plan, place[Place.DATA_FROM_NS])
        _seek_positions(plan, place[Place.POSITIONS_FROM_NS], positions)
    return packet


@inlined_kernel
def _end(plan: LidarPlan, state: FeederState, packet: int, positions: npt.NDArray[np.int64]) -> None:
    """Tell the next loop where to begin, and that it may."""
    place = state.place
    place[Place.PACKET] = packet
    for train in range(positions.size):
        place[Place.TRAINS + train] = positions[train]
    if packet > 0:
        place[Place.DATA_FROM_NS] = max(data_deadline_ns(plan, packet - 1) + 1, place[Place.DATA_FROM_NS])
    store_release(state.words, (FeederWord.ENDED,), 1)


@inlined_kernel
def _note_done(counters: npt.NDArray[np.int64], due_ns: int, done_ns: int) -> None:
    """Count a datagram that was made too late."""
    if done_ns > due_ns:
        counters[FeederCounter.LATE] += 1
        if counters[FeederCounter.LATE_SINCE_NS] == 0:
            counters[FeederCounter.LATE_SINCE_NS] = done_ns


@inlined_kernel
def _feed_data(
    plan: LidarPlan,
    carrier: Carrier,
    world: World,
    framing: Framing,
    rings: Rings,
    flow: int,
    epoch_ns: int,
    late_limit_ns: int,
    state: FeederState,
    shots: Shots,
    lookout: Lookout,
    datagram: npt.NDArray[np.uint8],
    packet: int,
    due_ns: int,
    now_ns: int,
) -> int:
    """Render a data packet into its ring, or skip to the next one that can be in time; returns the index of the packet after it."""
    counters = state.counters
    estimate_ns = counters[FeederCounter.ESTIMATE_NS]
    following = packet + 1
    from_ns = earliest_due_ns(now_ns, estimate_ns, late_limit_ns, counters[FeederCounter.LATE_SINCE_NS])
    if due_ns >= from_ns:
        size = render_data_packet(plan, carrier, world, framing, packet, shots, datagram)
        done_ns = monotonic_ns()
        if not push(rings, flow, due_ns, now_ns, datagram, size):
            counters[FeederCounter.RING_FULL] += 1
        _note_done(counters, due_ns, done_ns)
        counters[FeederCounter.RENDERED] += 1
        counters[FeederCounter.RENDER_SUM_NS] += done_ns - now_ns
        counters[FeederCounter.ESTIMATE_NS] = next_estimate_ns(estimate_ns, done_ns - now_ns)
        counters[FeederCounter.UNSAID] = shots.unsaid[0]
        state.render[bin_index(done_ns - now_ns)] += 1
        note_packet(lookout, plan, carrier.live, shots)
    else:
        following = max(first_packet_due(plan, from_ns - epoch_ns), following)
        counters[FeederCounter.SKIPPED] += following - packet
    return following


@inlined_kernel
def _feed_position(
    plan: LidarPlan,
    carrier: Carrier,
    framing: Framing,
    rings: Rings,
    flow: int,
    late_limit_ns: int,
    state: FeederState,
    datagram: npt.NDArray[np.uint8],
    positions: npt.NDArray[np.int64],
    position_ns: int,
    due_ns: int,
    now_ns: int,
) -> None:
    """Encode a position packet into its ring, or skip it: it costs little, so only what the sending loop would throw away is skipped."""
    counters = state.counters
    if now_ns > due_ns + late_limit_ns:
        counters[FeederCounter.POSITIONS_SKIPPED] += 1
    else:
        index = _NONE
        for train in range(positions.size):
            index += positions[train]
        size = render_info_packet(plan, carrier, framing, index, position_ns, datagram)
        if not push(rings, flow, due_ns, now_ns, datagram, size):
            counters[FeederCounter.RING_FULL] += 1
        _note_done(counters, due_ns, monotonic_ns())
        counters[FeederCounter.POSITIONS] += 1


@inlined_kernel
def _rest(rings: Rings, flow: int, lead_ns: int, due_ns: int, now_ns: int, brake: npt.NDArray[np.int64]) -> bool:
    """Sleep a while where the next packet is not to be made yet, or its ring is full and it is not due; False where neither is so."""
    wait_ns = due_ns - lead_ns - now_ns
    is_early = wait_ns > 0
    is_held = not is_early and now_ns < due_ns and depth(rings, flow) >= rings.deadline_ns.shape[1]
    if is_early:  # a near start is waited for in one go: one wake-up a packet
        doze_until(now_ns + (wait_ns if wait_ns < 2 * _LONGEST_SLEEP_NS else _LONGEST_SLEEP_NS), brake)
    elif is_held:
        doze_until(min(now_ns + _LONGEST_SLEEP_NS, due_ns), brake)
    return is_early or is_held


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
    late_limit_ns: int,
    goes_on: int,
    stop_packet: int,
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
        late_limit_ns: How late the sending loop still sends a datagram.
        goes_on: Not 0: begin with the very packets before which the former loop ended; 0: with the first ones due from the rig times in ``state.place`` on.
        stop_packet: Index of the data packet to end before; -1: none.
        state: Shared.
        shots: Working arrays.
        lookout: Told what each packet says, once it is on its way.
        datagram: ``uint8[>= frame]``, working array.
        positions: ``int64[t]``, working array: next packet of each position train.
    """
    counters, words = state.counters, state.words
    store_release(words, (FeederWord.WAITING,), 1)
    while load_acquire(state.before, (FeederWord.ENDED,)) == 0:
        if load_acquire(words, (FeederWord.STOP,)) != 0:
            return
        doze_until(monotonic_ns() + _HAND_OVER_POLL_NS, state.brake)
    packet = _begin(plan, state, goes_on, positions)
    shots.unsaid[0] = counters[FeederCounter.UNSAID]
    store_release(counters, (FeederCounter.NEXT_PACKET,), packet)
    while load_acquire(words, (FeederWord.STOP,)) == 0 and packet != stop_packet:
        data_due_ns = epoch_ns + data_deadline_ns(plan, packet)
        train, position_ns = next_position(plan.position, positions)
        position_due_ns = epoch_ns + position_deadline_ns(plan, position_ns)
        is_data = data_due_ns <= position_due_ns
        due_ns = data_due_ns if is_data else position_due_ns
        flow = data_flow if is_data else position_flow
        now_ns = monotonic_ns()
        lead_ns = lead_in_force_ns(load_acquire(state.lead, (0,)), counters[FeederCounter.ESTIMATE_NS], plan.sequences_per_packet * plan.sequence_ns)
        if _rest(rings, flow, lead_ns, due_ns, now_ns, state.brake):
            counters[FeederCounter.LATE_SINCE_NS] = 0
            continue
        is_full = depth(rings, flow) >= rings.deadline_ns.shape[1]  # and the packet is due: the sending loop does not take what is due before it
        if is_full:
            counters[FeederCounter.RING_FULL] += 1
        if is_data:
            if is_full:
                packet += 1
            else:
                packet = _feed_data(
                    plan,
                    carrier,
                    world,
                    data_framing,
                    rings,
                    flow,
                    epoch_ns,
                    late_limit_ns,
                    state,
                    shots,
                    lookout,
                    datagram,
                    packet,
                    due_ns,
                    now_ns,
                )
            store_release(counters, (FeederCounter.NEXT_PACKET,), packet)
        else:
            if not is_full:
                _feed_position(plan, carrier, position_framing, rings, flow, late_limit_ns, state, datagram, positions, position_ns, due_ns, now_ns)
            positions[train] += 1
            state.place[Place.POSITIONS_FROM_NS] = due_ns - epoch_ns + 1
    _end(plan, state, packet, positions)


@dataclass(kw_only=True, eq=False)
class Feeder:
    """A lidar's feeder thread.

    Attributes:
        lidar: What it renders.
        rings: Of the transmitter.
        data_flow: Row of the data flow.
        position_flow: Row of the position flow.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        lead_ns: How long before its deadline a packet is rendered, to begin with; ``set_lead_ns`` changes it.
        settings: Scheduling of the thread.
        late_limit_ns: How late the sending loop still sends a datagram.
        lookout: Told what is near the vehicle that carries the lidar.
        state: Shared with the loop; after ``hand_over_to`` with the successor too.
        scheduling_mode: What the thread obtained.
    """

    lidar: LidarEmulator
    rings: Rings
    data_flow: int
    position_flow: int
    epoch_ns: int
    lead_ns: int
    settings: ThreadSettings
    late_limit_ns: int = _DEFAULT_LATE_LIMIT_NS
    lookout: Lookout = field(default_factory=no_lookout)
    state: FeederState = field(default_factory=allocate_state)
    scheduling_mode: str = ""
    _thread: threading.Thread | None = None
    _entered: threading.Event = field(default_factory=threading.Event)
    _refusal: TransmitError | None = None
    _goes_on: bool = False

    def start(self, *, from_ns: int = 0) -> None:
        """Begin to render; returns when the thread's scheduling is in force.

        Args:
            from_ns: Rig time from which packets are this feeder's: those due later are rendered, or counted as skipped. The sensor's first packet
                by default; a sensor that joins later begins at a time to come.

        Raises:
            TransmitError: the scheduling demanded is not permitted.
        """
        self.set_lead_ns(self.lead_ns)
        self.state.place[Place.DATA_FROM_NS] = self.state.place[Place.POSITIONS_FROM_NS] = from_ns
        self._enter()

    def stop(self) -> None:
        """End the thread; returns when it has ended, within milliseconds."""
        publish(self.state.words, int(FeederWord.STOP), 1)
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def set_lead_ns(self, lead_ns: int) -> None:
        """Render packets so long before their deadlines from now on; with a longer lead, all that are due until then at once."""
        self.lead_ns = lead_ns
        publish(self.state.lead, 0, lead_ns)

    def hand_over_to(self, successor: "Feeder") -> None:
        """Let another feeder of the same rings go on with exactly the next packet, and end.

        The successor may see another world, render otherwise or head its packets otherwise. Where it fires at other times (rate, return mode) it goes
        on with its own first packets due after the last ones of this feeder. It is made ready before this one is told to end, so that between the two
        lies the time to wake a thread. Counters and lead become common to both.

        Raises:
            TransmitError: the successor's scheduling is not permitted; this feeder goes on.
            ValueError: the successor feeds other rings or from another epoch, or this feeder does not run.
        """
        if not self.alive:
            raise ValueError("a feeder must run to be succeeded")
        mine, other = (self.data_flow, self.position_flow, self.epoch_ns), (successor.data_flow, successor.position_flow, successor.epoch_ns)
        if successor.rings is not self.rings or other != mine:
            raise ValueError(f"a successor must feed the same rows from the same epoch, {mine}, got {other}")
        successor._succeed(self)  # noqa: SLF001 - of the same class
        self.stop()

    def _succeed(self, former: "Feeder") -> None:
        """Get ready to go on where another feeder ends."""
        self.warm()
        self.state = state_after(former.state)
        self.lead_ns = former.lead_ns
        self._goes_on = _schedule(self.lidar.plan) == _schedule(former.lidar.plan)
        self._enter()
        while self.state.words[FeederWord.WAITING] == 0 and self.alive:
            time.sleep(_START_POLL_S)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def covered_ns(self) -> int:
        """CLOCK_MONOTONIC time before which every data packet that is due is in the ring, or counted as skipped."""
        return self.epoch_ns + int(data_deadline_ns(self.lidar.plan, int(self.state.counters[FeederCounter.NEXT_PACKET])))

    def warm(self) -> None:
        """Load or compile the loop's kernel and touch its arrays, without rendering anything."""
        stopped = allocate_state()
        stopped.words[FeederWord.STOP] = 1
        self._feed(stopped)
        self.set_lead_ns(self.lead_ns)  # loads its kernel too

    def measure(self) -> None:
        """Render some packets from all around for nobody, before the thread starts: the CPU time one takes is the first estimate.

        Takes some 24 packets' time. The median of the places is taken; what other processes take meanwhile does not count.
        """
        plan = self.lidar.plan
        turn = max(round(_TURN_NS / (plan.sequences_per_packet * plan.sequence_ns)), _REHEARSED_PLACES)
        firsts = [place * turn // _REHEARSED_PLACES for place in range(_REHEARSED_PLACES)]
        idle_ns = min(self._rehearse(first, 0) for first in firsts)
        times_ns = [(self._rehearse(first, _REHEARSED_PACKETS) - idle_ns) // _REHEARSED_PACKETS for first in firsts]
        self.state.counters[FeederCounter.ESTIMATE_NS] = max(int(np.median(times_ns)), 1)

    def _rehearse(self, first: int, count: int) -> int:
        """CPU time to run the loop for so many packets, for nobody."""
        rings = allocate_rings(max(self.data_flow, self.position_flow) + 1, 2 * _REHEARSED_PACKETS, self.rings.payload.shape[2])
        state = allocate_state()
        state.place[Place.DATA_FROM_NS] = data_deadline_ns(self.lidar.plan, first)
        state.place[Place.POSITIONS_FROM_NS] = NEVER_NS // 2
        publish(state.lead, 0, NEVER_NS)
        begun_ns = time.thread_time_ns()
        self._feed(state, rings, first + count, epoch_ns=time.monotonic_ns() + _REHEARSAL_AHEAD_NS)
        return time.thread_time_ns() - begun_ns

    def successor(self, lidar: LidarEmulator) -> "Feeder":
        """A feeder of another lidar for the same rings, yet to be handed over to."""
        return Feeder(
            lidar=lidar,
            rings=self.rings,
            data_flow=self.data_flow,
            position_flow=self.position_flow,
            epoch_ns=self.epoch_ns,
            lead_ns=self.lead_ns,
            settings=self.settings,
            late_limit_ns=self.late_limit_ns,
            lookout=self.lookout,
        )

    def reschedule(self, settings: ThreadSettings) -> None:
        """Run the thread otherwise from now on; one that has left real-time scheduling for good stays as it is.

        Raises:
            TransmitError: the scheduling demanded is not permitted; the thread runs as before.
        """
        thread = self._thread
        if thread is not None and thread.native_id is not None and thread.is_alive() and not is_applied(self.state.brake):
            self.scheduling_mode = apply(settings, thread.native_id).mode.value
        self.settings = settings

    @property
    def cpu_ns(self) -> int | None:
        """CPU time that the thread has taken; None while it does not run."""
        thread = self._thread
        if thread is None or thread.native_id is None:
            return None
        try:
            return time.clock_gettime_ns((~thread.native_id << 3) | _CPU_CLOCK_OF_THREAD)
        except OSError:  # it has ended meanwhile
            return None

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

    def _enter(self) -> None:
        self._entered.clear()
        self._thread = threading.Thread(target=self._run, name=f"feed-{self.lidar.setting.name}", daemon=True)
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
        self._feed(self.state)

    def _feed(self, state: FeederState, rings: Rings | None = None, stop_packet: int = -1, *, epoch_ns: int | None = None) -> None:
        """Run the loop; for nobody, where the rings are not this feeder's own."""
        lidar = self.lidar
        feed(
            lidar.plan,
            lidar.carrier,
            lidar.world,
            lidar.data_framing,
            lidar.position_framing,
            rings or self.rings,
            self.data_flow,
            self.position_flow,
            self.epoch_ns if epoch_ns is None else epoch_ns,
            self.late_limit_ns,
            int(self._goes_on),
            stop_packet,
            state,
            allocate_shots(lidar.plan, lidar.plan.sequences_per_packet, is_opaque=lidar.world.is_opaque),
            no_lookout() if rings else self.lookout,
            np.zeros(HEADER_SIZE + max(lidar.plan.data_size, lidar.plan.info_size), np.uint8),
            np.zeros(lidar.plan.position.period_ns.size, np.int64),
        )


def _schedule(plan: LidarPlan) -> tuple[object, ...]:
    """What the deadlines of all packets follow from."""
    stream = plan.position
    trains = tuple(stream.period_ns.tolist()), tuple(stream.jitter_ns.tolist()), tuple(stream.phase_ns.tolist())
    of_positions = *trains, stream.minimum_gap_ns, stream.latency_ns, int(stream.seed), stream.stream
    return *plan.clock, plan.sequences_per_packet, plan.sequence_ns, plan.data_latency_ns, of_positions
