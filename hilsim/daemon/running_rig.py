"""The running rig: a list of parts and the transmitter, which are built, changed and stopped together.

It calls each step for all parts in their order (``daemon.part_list``), without knowing their kinds.
"""

import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from hilsim.assembly.network import network_faults, scripted_faults
from hilsim.config.part_kind import parts_of
from hilsim.config.part_tables import part_kind
from hilsim.config.rig import Rig
from hilsim.daemon.flows import Flows
from hilsim.daemon.health import HealthMonitor
from hilsim.daemon.part_list import make_parts
from hilsim.daemon.parts import Needs, Part, Played, RigClock, RigContext, Say, played
from hilsim.daemon.sinks.follower import queue_slots
from hilsim.daemon.sinks.live import LivePackets
from hilsim.daemon.sinks.part import Sinks
from hilsim.daemon.streaming.change_queue import ChangeQueue
from hilsim.daemon.streaming.changer import Changer
from hilsim.daemon.streaming.flow_specs import ring_slots
from hilsim.daemon.streaming.instant import rig_clock
from hilsim.daemon.streaming.sensors import Sensors
from hilsim.daemon.streaming.stream import STALLED_S, Streaming
from hilsim.errors import ConfigError, TransmitError
from hilsim.faults.specs import FaultSpec
from hilsim.limits import INJECTED_FAULTS
from hilsim.protocols.ethernet import Framing
from hilsim.telemetry.clocks import utc_ahead_ns
from hilsim.telemetry.faults import Fault, InjectedFault
from hilsim.telemetry.loop import read_flows, read_loop_turn_age_s
from hilsim.telemetry.readings import CommandCounts, HttpCounts, Reading
from hilsim.transmit.brake import brake_reason
from hilsim.transmit.kernel_drops import read_kernel_drops
from hilsim.transmit.statistics import Counter
from hilsim.transmit.transmitter import Transmitter
from hilsim.world.platforms.live import LivePose

P = TypeVar("P", bound=Part)

_START_UP_NS = 60_000_000
"""Time from choosing rig time 0 to rig time 0; doubled at each further try if the rings could not be filled in time."""
_LONGEST_START_UP_NS = 60_000_000_000
_MARGIN_NS = 30_000_000
"""Time between the rings being full and rig time 0, in which the other threads start."""
_HEADROOM_FLOWS = 16
_TOTALS = {"sent_packets": Counter.PACKETS, "late_packets": Counter.LATE, "dropped_packets": Counter.DROPPED}


class RunningRig:
    """A running rig.

    Attributes:
        health: Monitor that judges readings; ``HealthReporter`` reports its findings.
        commands: Counts of commands by datagram (``control.datagram_server``).
        http: Counts of requests over HTTP and WebSocket (``control.http_server``).
        clock: Instants of rig time 0 and of the first packets, once they are known.
        transmitter: Transmitter, from opening on.
        changer: Maker of timed changes.
        changes: Changes that wait for their rig times.
    """

    transmitter: Transmitter
    _flows: Flows

    def __init__(self, *, rig: Rig, say: Say = lambda _event, _keys: None) -> None:
        """Create a running rig for ``rig``; ``say`` is called with an event and its keys when a setting was changed for rendering to keep up."""
        self.health = HealthMonitor()
        self.commands = CommandCounts()
        self.http = HttpCounts()
        self._context = RigContext(rig=rig, say=say)
        self._parts = [*make_parts(self._context)]
        self._tables = frozenset(rig.spec.parts)
        sensors = self.part(Sensors)
        self.changer = Changer(context=self._context, parts=self._parts, streams=sensors.streams, pacing=sensors.pacer.lock)
        self.changes = ChangeQueue(self.changer)
        self.changes.add_script(rig.script.changes if rig.script is not None else ())
        self.clock = RigClock()
        self._open = ExitStack()
        self._changing = threading.Lock()
        self._is_open = False
        self._has_begun = False
        self._has_ended = False

    @property
    def rig(self) -> Rig:
        """Present rig."""
        return self._context.rig

    def part(self, kind: type[P]) -> P:
        """Part of a kind."""
        return next(part for part in self._parts if isinstance(part, kind))

    # -- starting and stopping ---------------------------------------------------------------------------------------------------------

    def build(self) -> None:
        """Read the rig's files, the slow part of a start.

        Raises:
            AssetError: a file cannot be used.
            CaptureError: a capture cannot be replayed, or the directory of the recording cannot be used.
            ConfigError: rig time 0 has passed, and the rig cannot begin in the middle.
        """
        rig_clock(self.rig, time.monotonic_ns())
        for part in self._parts:
            part.prepare()

    def rehearse(self) -> None:
        """Load or compile every kernel that ``open`` and ``start`` need, without opening a port or a file, for a process that compiles ahead."""
        self.build()
        with self._make_transmitter(headroom_flows=0):
            for part in self._parts:
                part.rehearse()

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the rig's files for the operator."""
        return self._context.notes

    def open(self) -> None:
        """Open all sockets and load every kernel, without sending; after an error nothing is open.

        Raises:
            TransmitError: a socket cannot be opened or a permission is missing.
            CaptureError: the recording cannot be created.
        """
        self._open = ExitStack()
        self.transmitter = self._open.enter_context(self._make_transmitter(headroom_flows=_HEADROOM_FLOWS))
        self.changer.transmitter = self.transmitter
        self._is_open = True
        self._flows = Flows(self.transmitter, self._announce)
        try:
            self.transmitter.set_faults(scripted_faults(self.rig))
            for part in self._parts:
                part.open(self._flows)
            for part in self._parts:
                part.warm()
        except BaseException:
            self.stop()
            raise

    def _announce(self, number: int, name: str, framing: Framing, stack: str) -> None:
        for part in self._parts:
            part.add_flow(number, name, framing, stack)

    def _make_transmitter(self, *, headroom_flows: int) -> Transmitter:
        needs = [part.needs() for part in self._parts]
        total = Needs(
            flows=sum(need.flows for need in needs) + headroom_flows,
            capacity_bytes=max(need.capacity_bytes for need in needs),
            packet_rate_hz=sum(need.packet_rate_hz for need in needs),
            queues=sum(need.queues for need in needs),
        )
        return Transmitter(
            self.rig.spec.transmit,
            flows=max(total.flows, 1),
            capacity=total.capacity_bytes,
            slots=ring_slots(self.rig),
            queues=total.queues,
            queue_slots=queue_slots(total.packet_rate_hz),
            faults=int(INJECTED_FAULTS.bound) if self._context.can_change or scripted_faults(self.rig) else 0,
            seed=self.rig.spec.seed,
        )

    def start(self) -> None:
        """Start streaming; rig time 0 is in the near future, or at the rig's ``transmit.epoch_utc``.

        The beginning is chosen when every thread runs, and is valid only if the rings are full before it. A machine that is too busy for that starts later, without
        losing packets.

        Raises:
            ConfigError: rig time 0 has passed, and the rig cannot begin in the middle.
            TransmitError: the scheduling demanded is not permitted, or the machine is too busy to prepare the first packets within a minute.
        """
        self.transmitter.start()
        ahead_ns = _START_UP_NS
        while not self._try_to_prime(ahead_ns):
            ahead_ns *= 2
            if ahead_ns > _LONGEST_START_UP_NS:
                raise TransmitError(
                    f"the first packets must be ready within {_LONGEST_START_UP_NS // 10**9} s, got too few: this machine is too busy (hilsim doctor)"
                )
        rendered_ns = max((each.render_thread.covered_ns - self.clock.epoch_ns for each in self.streams.values()), default=0)
        self.clock = self.clock._replace(rendered_ns=rendered_ns)
        for part in self._parts:
            part.start(self.clock)
        self._has_begun = True

    def _try_to_prime(self, ahead_ns: int) -> bool:
        self.clock = rig_clock(self.rig, time.monotonic_ns() + ahead_ns)
        self.transmitter.set_epoch(self.clock.epoch_ns)
        return all(part.prime(self.clock, self.clock.begin_ns - _MARGIN_NS) for part in self._parts)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Run the parts' tasks on the event loop while the block runs."""
        async with AsyncExitStack() as served:
            for part in self._parts:
                await served.enter_async_context(part.serve(self.changes))
            await served.enter_async_context(self.changes.serve())
            yield

    def pace(self) -> None:
        """Adapt to the machine's load; to be called twice a second, by any thread."""
        for part in self._parts:
            part.pace(time.monotonic_ns())

    def leave_real_time(self) -> None:
        """Take rendering off real-time scheduling permanently; a signal handler may call it."""
        for part in self._parts:
            part.leave_real_time()

    def stop(self) -> dict[str, int]:
        """End every thread and close every socket; then returns the numbers of packets sent and not sent."""
        with self._changing:
            self._has_ended = True
            totals: dict[str, int] = {}
            for part in reversed(self._parts):
                if not part.follows_sending:
                    part.stop()
            if self._is_open:
                self.transmitter.stop()
                totals = self._totals()
                self._open.close()
            for part in reversed(self._parts):
                if part.follows_sending:
                    part.stop()
            self._is_open = False
        return totals

    def _totals(self) -> dict[str, int]:
        """Numbers of packets sent, sent late, dropped because too late, and never rendered, of all open flows."""
        rows = sorted(self.transmitter.flows)
        totals = {name: int(self.transmitter.statistics.counters[rows, column].sum()) for name, column in _TOTALS.items()}
        for part in self._parts:
            totals |= part.totals()
        return totals

    # -- changing ----------------------------------------------------------------------------------------------------------------------

    def change(self, rig: Rig) -> tuple[str, ...]:
        """Change to another rig; what is equal in both continues unchanged.

        Every part prepares its change, then all sockets are opened, then each part changes.

        Returns:
            One sentence for each thing that was done.

        Raises:
            ConfigError: the change needs a restart; nothing was changed.
            AssetError: a file cannot be used; nothing was changed.
            CaptureError: a capture cannot be replayed; nothing was changed.
            TransmitError: a socket or the scheduling cannot be obtained; nothing was changed.
        """
        new, now = rig.spec, self.rig.spec
        if (new.transmit, new.render, new.metrics, new.control) != (now.transmit, now.render, now.metrics, now.control):
            raise ConfigError(
                f"{rig.path}: [transmit], [render], [metrics] and [control] cannot change while packets flow; restart the service for that"
            )
        network = network_faults(rig, ())
        self.transmitter.check_faults(network)
        with self.changer.lock:  # a timed change belongs to one rig or to the other
            added = [kind for kind, _ in parts_of(new) if kind.can_reload and kind.table not in self._tables]
            others = [part for kind in added if (part := kind.part(self._context)) is not None]
            for part in others:
                part.open(self._flows)  # of the present rig, which has nothing of it
            changes = [part.change(rig) for part in (*self._parts, *others)]
            fixed = [table for table in {**now.parts, **new.parts} if new.part(table) != now.part(table) and not part_kind(table).can_reload]
            if fixed:
                raise ConfigError(f"{rig.path}: {' and '.join(fixed)} cannot change while packets flow; restart the service for that")
            with self._changing:
                if self._has_ended:
                    raise ConfigError(f"{rig.path}: a rig cannot change while it stops")
                flows, retired = ([flow for change in changes for flow in getattr(change, name)] for name in ("flows", "retired"))
                with self.transmitter.reserved(flows, retired):
                    self.changer.forget()
                    self._parts.extend(others)
                    self._tables |= set(new.parts)
                    done = tuple(line for change in changes for line in change.make(self.clock))
                self._context.settle(rig)
                self.transmitter.set_faults(network)
        return done

    # -- looking -----------------------------------------------------------------------------------------------------------------------

    @property
    def flowing(self) -> bool:
        """Whether all flows that begin at once have sent packets."""
        return all(part.has_begun for part in self._parts)

    @property
    def played_out(self) -> bool:
        """Whether every recording has ended and all packets were sent."""
        states = [each.state() for each in self.played().values()]
        return all(state.has_ended or state.fault for state in states) and self.transmitter.is_idle

    @property
    def summary(self) -> str:
        """Text with the numbers of streaming sensors, devices and what parts run."""
        return " and ".join(part.summary for part in self._parts if part.summary) + " streaming"

    @property
    def lines(self) -> Iterator[tuple[str, str]]:
        """Names of what the parts run, with addresses or topics, for the terminal."""
        for part in self._parts:
            yield from part.lines()

    def played(self, name: str = "") -> dict[str, Played]:
        """Recordings that play, as ``daemon.parts.played`` gives them."""
        return played(self._parts, name)

    @property
    def played_notes(self) -> tuple[tuple[str, str], ...]:
        """Remarks on recordings for the operator: name of the recording and a sentence."""
        return tuple((name, note) for name, each in self.played().items() for note in each.notes)

    @property
    def live_pose(self) -> LivePose | None:
        """Poses of a platform that a controller or another simulator moves; None without one."""
        return self._context.live_pose

    @property
    def live_packets(self) -> LivePackets | None:
        """Stream of the sent packets for clients; None while nothing is sent, or if the rig has no control socket or port."""
        return self.part(Sinks).live if self._has_begun else None

    @property
    def streams(self) -> dict[str, Streaming]:
        """Streaming sensors by name."""
        return dict(self.part(Sensors).streams)

    @property
    def passes(self) -> int:
        """Number of turns of the sending loop so far."""
        return int(self.transmitter.statistics.passes[0])

    @property
    def obtained(self) -> dict[str, object]:
        """Settings that the kernel granted, for the log: scheduling, with the reason if it is less than requested, locked memory, socket options."""
        transmitter = self.transmitter
        scheduling, lock = transmitter.scheduling, transmitter.memory_lock
        found: dict[str, object] = {"scheduling": scheduling.mode.value if scheduling else "", "memory_locked": bool(lock and lock.locked)}
        if scheduling and scheduling.reason:
            found["scheduling_reason"] = scheduling.reason
        if lock and lock.reason:
            found["memory_reason"] = lock.reason
        if transmitter.shortfalls:
            found["socket_shortfalls"] = list(transmitter.shortfalls)
        return found

    def reading(self) -> Reading:
        """All values for the metrics; blocks only for system calls, a fraction of a millisecond."""
        transmitter = self.transmitter
        now_ns = time.monotonic_ns()
        rig_ns = now_ns - self.clock.epoch_ns
        rows = transmitter.flows
        names = [rows[row].name if row in rows else "" for row in range(max(rows, default=-1) + 1)]
        flows = read_flows(names, transmitter.statistics, transmitter.rings, now_ns, transmitter.network.arrays.counts)
        turn_age_s = read_loop_turn_age_s(transmitter.statistics, now_ns)
        reading = Reading(
            flows=tuple(flow for flow in flows if flow.sensor),
            scheduling={"transmit": transmitter.scheduling.mode.value if transmitter.scheduling else ""},
            loop_turn_age_s=turn_age_s,
            memory_locked=transmitter.memory_lock is not None and transmitter.memory_lock.locked,
            commands=self.commands if self.rig.spec.control.listen else None,
            http=self.http if self.rig.spec.control.http else None,
            drops=read_kernel_drops(flow.socket for flow in transmitter.flows.values()),
            utc_offset_s=(utc_ahead_ns() - (self.clock.utc_epoch_ns - self.clock.epoch_ns)) / 1e9 if self.clock.epoch_ns else None,
            faults=self._faults(turn_age_s, now_ns),
            injected=tuple(InjectedFault(each.label, each.kind, each.on, each.begin_ns <= rig_ns) for each in self.injected(rig_ns)),
        )
        for part in self._parts:
            reading = part.add_reading(reading, now_ns)
        reading = replace(reading, scheduling={thread: mode for thread, mode in reading.scheduling.items() if mode})
        return self.health.complete(reading, now_ns)

    def injected(self, rig_ns: int) -> tuple[FaultSpec, ...]:
        """Faults on command that act at a rig time or later."""
        return tuple(fault for fault in self.changer.faults if fault.end_ns > rig_ns)

    def _faults(self, turn_age_s: float | None, now_ns: int) -> tuple[Fault, ...]:
        """Faults of threads that have ended or are silent; losses are judged by ``health``."""
        if not self._has_begun:
            return (Fault(key="starting", text="nothing is sent yet"),)
        found: list[Fault] = []
        if not self.transmitter.running:
            found.append(Fault(key="loop_ended", text="the sending loop has ended: a packet was later than late_limit_us, and late_policy is stop"))
        elif turn_age_s is not None and turn_age_s > STALLED_S:
            found.append(Fault(key="loop_stalled", text=f"the sending loop has not turned for {turn_age_s:.1f} s"))
        if reason := brake_reason(self.transmitter.statistics.brake):
            found.append(Fault(key="real_time_left", text=f"{reason}; the sending loop has left real-time scheduling"))
        for part in self._parts:
            found.extend(part.faults(now_ns))
        return tuple(found)
