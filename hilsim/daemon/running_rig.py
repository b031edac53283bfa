"""The running rig: a list of parts and the transmitter, which are built, changed and stopped together.

It calls each step for all parts in their order (``daemon.part_list``), without knowing their kinds.
"""

import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from hilsim.config.part_kind import parts_of
from hilsim.config.part_tables import part_kind
from hilsim.config.rig import Rig, takes_timed_changes
from hilsim.daemon.health import HealthMonitor
from hilsim.daemon.part_list import make_parts
from hilsim.daemon.parts import Needs, Part, Played, RigClock, RigContext, Say
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
from hilsim.telemetry.clocks import utc_ahead_ns
from hilsim.telemetry.faults import Fault
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
    """

    def __init__(self, *, rig: Rig, say: Say = lambda _event, _keys: None) -> None:
        """Create a running rig for ``rig``; ``say`` is called with an event and its keys when a setting was changed for rendering to keep up."""
        self.health = HealthMonitor()
        self.commands = CommandCounts()
        self.http = HttpCounts()
        self._context = RigContext(rig=rig, say=say, can_change=takes_timed_changes(rig))
        self._parts = make_parts(self._context)
        self._tables = frozenset(rig.spec.parts)
        self._open = ExitStack()
        self._changing = threading.Lock()
        self._has_ended = False
        self._changes: ChangeQueue | None = None

    @property
    def rig(self) -> Rig:
        """Present rig."""
        return self._context.rig

    @property
    def clock(self) -> RigClock:
        """Instants of rig time 0 and of the first packets."""
        return self._context.clock

    @property
    def epoch_ns(self) -> int:
        """CLOCK_MONOTONIC time of rig time 0."""
        return self._context.clock.epoch_ns

    @property
    def utc_epoch_ns(self) -> int:
        """UTC of rig time 0."""
        return self._context.clock.utc_epoch_ns

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
            for part in reversed(self._parts):  # sensors have the obstacle maps that other parts read
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
        self._open.enter_context(self._make_transmitter(headroom_flows=_HEADROOM_FLOWS))
        try:
            for part in self._parts:
                part.open()
            for part in self._parts:
                part.warm()
        except BaseException:
            self.stop()
            raise

    def _make_transmitter(self, *, headroom_flows: int) -> Transmitter:
        needs = [part.needs() for part in self._parts]
        total = Needs(
            flows=sum(need.flows for need in needs) + headroom_flows,
            capacity_bytes=max(need.capacity_bytes for need in needs),
            packet_rate_hz=sum(need.packet_rate_hz for need in needs),
            queues=sum(need.queues for need in needs),
        )
        self._context.transmitter_or_none = Transmitter(
            self.rig.spec.transmit,
            flows=max(total.flows, 1),
            capacity=total.capacity_bytes,
            slots=ring_slots(self.rig),
            queues=total.queues,
            queue_slots=queue_slots(total.packet_rate_hz),
        )
        return self._context.transmitter

    def start(self) -> None:
        """Start streaming; rig time 0 is in the near future, or at the rig's ``transmit.epoch_utc``.

        The beginning is chosen when every thread runs, and is valid only if the rings are full before it. A machine that is too busy for that starts later, without
        losing packets.

        Raises:
            ConfigError: rig time 0 has passed, and the rig cannot begin in the middle.
            TransmitError: the scheduling demanded is not permitted, or the machine is too busy to prepare the first packets within a minute.
        """
        self._context.transmitter.start()
        ahead_ns = _START_UP_NS
        while not self._try_to_prime(ahead_ns):
            ahead_ns *= 2
            if ahead_ns > _LONGEST_START_UP_NS:
                raise TransmitError(
                    f"the first packets must be ready within {_LONGEST_START_UP_NS // 10**9} s, got too few: this machine is too busy (hilsim doctor)"
                )
        for part in self._parts:
            part.start()
        self._context.has_begun = True

    def _try_to_prime(self, ahead_ns: int) -> bool:
        self._context.clock = clock = rig_clock(self.rig, time.monotonic_ns() + ahead_ns)
        return all(part.prime(clock.begin_ns - _MARGIN_NS) for part in self._parts)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Run the parts' tasks on the event loop while the block runs."""
        async with AsyncExitStack() as served:
            self._context.make_change = self.changes.make
            for part in self._parts:
                await served.enter_async_context(part.serve())
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
            transmitter = self._context.transmitter_or_none
            for part in reversed(self._parts):
                if not part.follows_sending:
                    part.stop()
            if transmitter is not None:
                transmitter.stop()
            totals = self._totals()
            self._open.close()
            for part in reversed(self._parts):
                if part.follows_sending:
                    part.stop()
            self._context.transmitter_or_none = None
            self._context.rows.clear()
        return totals

    def _totals(self) -> dict[str, int]:
        """Numbers of packets sent, sent late, dropped because too late, and never rendered, of all open flows."""
        transmitter = self._context.transmitter_or_none
        if transmitter is None:
            return {}
        rows = sorted(self._context.rows)
        totals = {name: int(transmitter.statistics.counters[rows, column].sum()) for name, column in _TOTALS.items()}
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
        with self.changer.lock:  # a timed change belongs to one rig or to the other
            added = [kind for kind, _ in parts_of(new) if kind.can_reload and kind.table not in self._tables]
            parts = (*self._parts, *(part for kind in added if (part := kind.part(self._context)) is not None))
            changes = [part.change(rig) for part in parts]
            fixed = [table for table in {**now.parts, **new.parts} if new.part(table) != now.part(table) and not part_kind(table).can_reload]
            if fixed:
                raise ConfigError(f"{rig.path}: {' and '.join(fixed)} cannot change while packets flow; restart the service for that")
            with self._changing:
                if self._has_ended:
                    raise ConfigError(f"{rig.path}: a rig cannot change while it stops")
                flows, retired = ([flow for change in changes for flow in getattr(change, name)] for name in ("flows", "retired"))
                with self._context.transmitter.reserved(flows, retired):
                    self._parts, self._tables = parts, self._tables | set(new.parts)
                    done = tuple(line for change in changes for line in change.make())
                self._context.settle(rig)
        return done

    # -- looking -----------------------------------------------------------------------------------------------------------------------

    @property
    def flowing(self) -> bool:
        """Whether all flows that begin at once have sent packets."""
        return all(part.has_begun for part in self._parts)

    @property
    def played_out(self) -> bool:
        """Whether every recording has ended and all packets were sent."""
        rings, states = self.transmitter.rings, [each.state() for each in self.played().values()]
        return all(state.has_ended or state.fault for state in states) and bool((rings.head[:, 0] == rings.tail[:, 0]).all())

    @property
    def summary(self) -> str:
        """Text with the numbers of streaming sensors, devices and what parts run."""
        return " and ".join(part.summary for part in self._parts if part.summary) + " streaming"

    @property
    def lines(self) -> Iterator[tuple[str, str]]:
        """Names of what the parts run, with addresses or topics, for the terminal."""
        for part in self._parts:
            yield from part.lines()

    @property
    def changer(self) -> Changer:
        """Maker of timed changes."""
        return self.part(Sensors).changer

    @property
    def changes(self) -> ChangeQueue:
        """Changes that wait for their rig times."""
        if self._changes is None:
            self._changes = ChangeQueue(self.changer)
            self._changes.add_script(self.rig.script.changes if self.rig.script is not None else ())
        return self._changes

    def played(self, name: str = "") -> dict[str, Played]:
        """Recordings that play, as ``RigContext.chosen`` gives them."""
        return self._context.chosen(name)

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
        return self.part(Sinks).live if self._context.has_begun else None

    @property
    def streams(self) -> dict[str, Streaming]:
        """Streaming sensors by name."""
        return dict(self.part(Sensors).streams)

    @property
    def transmitter(self) -> Transmitter:
        """Transmitter, for measurements."""
        return self._context.transmitter

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
        rows = dict(self._context.rows)  # metrics are read in a worker thread, while a reload may change the rows
        names = [rows.get(row, "") for row in range(max(rows, default=-1) + 1)]
        flows = read_flows(names, transmitter.statistics, transmitter.rings, now_ns)
        turn_age_s = read_loop_turn_age_s(transmitter.statistics, now_ns)
        reading = Reading(
            flows=tuple(flow for flow in flows if flow.sensor),
            scheduling={"transmit": transmitter.scheduling.mode.value if transmitter.scheduling else ""},
            loop_turn_age_s=turn_age_s,
            memory_locked=transmitter.memory_lock is not None and transmitter.memory_lock.locked,
            commands=self.commands if self.rig.spec.control.listen else None,
            http=self.http if self.rig.spec.control.http else None,
            drops=read_kernel_drops(flow.socket for flow in transmitter.flows.values()),
            utc_offset_s=(utc_ahead_ns() - (self.utc_epoch_ns - self.epoch_ns)) / 1e9 if self.epoch_ns else None,
            faults=self._faults(turn_age_s, now_ns),
        )
        for part in self._parts:
            reading = part.add_reading(reading, now_ns)
        reading = replace(reading, scheduling={thread: mode for thread, mode in reading.scheduling.items() if mode})
        return self.health.complete(reading, now_ns)

    def _faults(self, turn_age_s: float | None, now_ns: int) -> tuple[Fault, ...]:
        """Faults of threads that have ended or are silent; losses are judged by ``health``."""
        if not self._context.has_begun:
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
