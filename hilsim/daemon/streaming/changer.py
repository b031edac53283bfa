"""Timed changes of a running rig: prepared beside the stream, published to every render thread for one rig time, and recorded with the time they began.

A change begins with a firing that no render thread has rendered yet, some milliseconds after the newest one. A thread that has rendered beyond it by the
time it sees the change (after a stall of the machine) begins later; the change is then recorded with that thread's own time.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hilsim.assembly.changed import RigState, check_unseen, is_changed, lidar_after
from hilsim.assembly.network import network_faults
from hilsim.config.script import ChangeSpec, ClearChange, ClockChange, FaultChange
from hilsim.daemon.parts import Actor, MadeChange, Part, RigClock, RigContext, Viewer, played
from hilsim.daemon.streaming.stream import Streaming
from hilsim.emulator.changing.segments import REFUSED
from hilsim.emulator.insertion.insertion import CAPACITY, Inserter
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.schedule import data_deadline_ns, packet_start_ns
from hilsim.errors import ConfigError, TransmitError
from hilsim.faults.specs import FaultSpec
from hilsim.protocols.ethernet import HEADER_SIZE
from hilsim.streaming.render_state import RenderCounter
from hilsim.transmit.faults.arrays import NEVER_NS
from hilsim.transmit.transmitter import Transmitter

if TYPE_CHECKING:
    from hilsim.emulator.lidar import LaterLidar

_MARGIN_NS = 3_000_000
"""Time from the newest firing that may have been rendered to the firing that a change begins with; publishing takes a fraction of it."""
_UNTOUCHED_NS = 10_000_000
"""Time before the lead of a packet's deadline in which its rendering cannot have begun."""
_FAULT_AHEAD_NS = 20_000_000
"""Time from a request for a fault to its begin, in which it is prepared."""
_PUBLISH_NS = 500_000
"""Time from publishing faults of the network to the first datagram that has them."""
_PAST_NS = 1_000_000_000
"""Time for which a fault of the network that has ended is kept, for datagrams that are late."""
_TRIES = 8
"""Each with twice the margin of the one before."""
_ANSWER_S = 5.0
_REPLAY_S = 0.1
"""Longest wait for a replay that shows a change: nothing may be due of it for longer."""
_POLL_S = 0.0002


class _TooLateError(ConfigError):
    """A fault of the network cannot begin, or end, at its time any more."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedChange:
    """A rig's state after a change, prepared before its time.

    Attributes:
        former: State before the change.
        state: State after the change.
        lidars: Lidars that change or see another world, by name.
    """

    former: RigState
    state: RigState
    lidars: Mapping[str, LidarEmulator]


@dataclass(kw_only=True, eq=False)
class Changer:
    """Maker of timed changes of the sensors of a running rig.

    Attributes:
        context: The rig, and its scene.
        parts: Parts of the rig.
        streams: Sensors of the rig, by name.
        pacing: Lock held while lidars change, because the pacer replaces their render threads.
        made: Changes since the rig was started or reloaded, in their order.
        lock: Lock held while a change is made or prepared; a reload holds it until the new rig runs.
        transmitter: Transmitter, once the rig is open.
    """

    context: RigContext
    parts: Sequence[Part]
    streams: Mapping[str, Streaming]
    pacing: threading.Lock
    made: list[MadeChange] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    transmitter: Transmitter | None = None
    _state: RigState | None = None
    _bases: dict[str, LidarEmulator] = field(default_factory=dict)
    _breaks: list[ChangeSpec] | None = None

    def forget(self) -> None:
        """Forget all changes, after the rig's file has been loaded again."""
        self.made = []
        self._state = None
        self._bases = {}
        self._breaks = []

    def lidar(self, name: str) -> tuple[LidarEmulator, bool]:
        """Lidar of a sensor as it is now, and whether its lasers fire; KeyError for an unknown name."""
        dark = self._state.dark if self._state is not None else ()
        return self.streams[name].lidar, self.context.rig.sensors.index(name) not in dark

    @property
    def faults(self) -> tuple[FaultSpec, ...]:
        """Faults that have not been cleared; some may have ended."""
        if self._state is not None:
            return self._state.faults
        network = network_faults(self.context.rig, self._breaks or ())
        return tuple(fault.spec for fault in network if fault.cut_ns == NEVER_NS) if self._breaks else self.context.rig.spec.fault

    @property
    def _viewers(self) -> list[Viewer]:
        return [viewer for part in self.parts if (viewer := part.viewer) is not None]

    @property
    def _is_seen(self) -> bool:
        """Whether anything looks at the scene of the rig."""
        return bool(self.streams or self._viewers) or any(each.inserter is not None for each in played(self.parts).values())

    def _actor(self, change: ChangeSpec) -> Actor | None:
        """Maker of the changes of a kind that is not of sensors or of what they see."""
        return next((part.actors[change.kind] for part in self.parts if change.kind in part.actors), None)

    def object_names(self) -> list[str]:
        """Names of the objects that exist now."""
        if self._state is not None:
            return self._state.object_names
        return [thing.name for thing in self.context.scenery(self.context.rig).objects] if self._is_seen else []

    def earliest_ns(self, clock: RigClock) -> int:
        """Earliest rig time at which a change published now takes effect for all sensors together."""
        rendered_ns = [_frontier_ns(streaming) for streaming in dict(self.streams).values()]
        return max([clock.now_ns(), *rendered_ns, *(inserter.next_ns for inserter in self._inserters().values())]) + _MARGIN_NS

    def prepare(self, change: ChangeSpec) -> PreparedChange | None:
        """Prepare a change for ``make`` without changing the rig; None if there is nothing to prepare. The result is valid until another change is made.

        Raises:
            ConfigError: the change cannot be made of the rig as it is.
            AssetError: a file cannot be used.
        """
        with self.lock:
            return None if self._actor(change) is not None or self._is_unseen(change) else self._prepared(change)

    def _is_unseen(self, change: ChangeSpec) -> bool:
        """Whether a change breaks or mends a rig in which nothing sees a scene."""
        return isinstance(change, FaultChange | ClearChange) and not self._is_seen

    def make(
        self, change: ChangeSpec, clock: RigClock, *, is_scheduled: bool = False, is_scripted: bool = False, prepared: PreparedChange | None = None
    ) -> MadeChange:
        """Make a change; returns some milliseconds later, when every render thread has begun with it.

        Args:
            change: The change, now or at a rig time not far ahead.
            clock: Instant of rig time 0.
            is_scheduled: Whether the change was accepted for a time that may have passed meanwhile; it is then made late.
            is_scripted: Whether the rig's script makes it.
            prepared: Result of ``prepare`` for this change, if it was called.

        Raises:
            ConfigError: the change cannot be made of the rig as it is, or would begin with firings that have been rendered; nothing was changed.
            AssetError: a file cannot be used; nothing was changed.
            TransmitError: a render thread does not answer.
        """
        actor = self._actor(change)
        if actor is not None:
            return self._act(actor, change, clock, is_scheduled=is_scheduled, is_scripted=is_scripted)
        for ahead_ns in (_FAULT_AHEAD_NS << attempt for attempt in range(_TRIES)):
            try:
                if self._is_unseen(change):
                    return self._break_unseen(change, clock, ahead_ns, is_scripted=is_scripted)
                return self._make(change, clock, ahead_ns, is_scheduled=is_scheduled, is_scripted=is_scripted, prepared=prepared)
            except _TooLateError:
                if change.at_ns is not None:
                    raise
        raise TransmitError(f"a fault of the network must begin in time, and {_TRIES} tries were late: this machine is too busy")

    def _make(
        self, change: ChangeSpec, clock: RigClock, ahead_ns: int, *, is_scheduled: bool, is_scripted: bool, prepared: PreparedChange | None
    ) -> MadeChange:
        """``make`` a change of sensors or of what they see; faults without a time begin ``ahead_ns`` after the earliest one."""
        with self.lock, self.pacing:
            if isinstance(change, FaultChange | ClearChange) and change.at_ns is None:
                change = replace(change, at_s=(self.earliest_ns(clock) + ahead_ns) / 1e9)  # a fault's ramp and its end are counted from there
                is_scheduled = True
            if prepared is None or prepared.former is not self._state:
                prepared = self._prepared(change)
            earliest_ns = self.earliest_ns(clock)
            if change.at_ns is not None and change.at_ns < earliest_ns and not is_scheduled:
                raise ConfigError(f"at_s must be {earliest_ns / 1e9:.6f} or later now, got {change.at_s}")
            at_ns = earliest_ns if change.at_ns is None else change.at_ns
            full = [name for name, inserter in self._inserters().items() if not inserter.has_room]
            if full:
                raise ConfigError(f"at most {CAPACITY - 1} changes may wait for a replay to resume, got one more for {', '.join(full)}")
            self._break_network(change, at_ns, clock)
            numbers = self._publish_inserted(prepared, at_ns)
            begun_ns = self._publish(prepared.lidars, at_ns)
            begun_ns |= {name: self._await_inserted(name, number, at_ns) for name, number in numbers.items()}
            seen_ns = self._publish_to_parts(prepared, at_ns)
            self._state, self.context.is_changed = prepared.state, True
            made = replace(_recorded(_dated(change, clock), at_ns, begun_ns, seen_ns), is_scripted=is_scripted)
            self.made.append(made)
            return made

    def _publish_to_parts(self, prepared: PreparedChange, at_ns: int) -> dict[str, int]:
        """Give a changed world, and changed faults, to parts; returns the rig time from which each thing of a name has them."""
        seen_ns: dict[str, int] = {}
        if prepared.state.world is not prepared.former.world:
            for see_later in self._viewers:
                seen_ns |= see_later(at_ns, prepared.state.world) or {}
        if prepared.state.faults != prepared.former.faults:
            for break_later in [part.breaker for part in self.parts if part.breaker is not None]:
                seen_ns |= break_later(at_ns, prepared.state.faults) or {}
        return seen_ns

    def _act(self, actor: Actor, change: ChangeSpec, clock: RigClock, *, is_scheduled: bool, is_scripted: bool) -> MadeChange:
        with self.lock:
            now_ns = clock.now_ns()
            if change.at_ns is not None and change.at_ns < now_ns and not is_scheduled:
                raise ConfigError(f"at_s must be {now_ns / 1e9:.6f} or later now, got {change.at_s}")
            made = replace(_recorded(change, *actor.make(change, clock), {}), is_scripted=is_scripted)
            self.made.append(made)
            return made

    def _break_unseen(self, change: ChangeSpec, clock: RigClock, ahead_ns: int, *, is_scripted: bool) -> MadeChange:
        """Break or mend the network of a rig in which nothing sees a scene."""
        with self.lock:
            check_unseen(self.context.rig, change)
            at_ns = self.earliest_ns(clock) + ahead_ns if change.at_ns is None else change.at_ns
            change = replace(change, at_s=at_ns / 1e9)
            self._break_network(change, at_ns, clock)
            made = replace(_recorded(change, at_ns, {}, {}), is_scripted=is_scripted)
            self.made.append(made)
            return made

    def _break_network(self, change: ChangeSpec, at_ns: int, clock: RigClock) -> None:
        """Break or mend the network at a rig time; what a script asks for is known from the start.

        Raises:
            ConfigError: the time has passed, or it cannot be broken so; nothing was changed.
        """
        rig, transmitter = self.context.rig, self.transmitter
        if self._breaks is None:
            self._breaks = [each for each in rig.script.changes if isinstance(each, FaultChange | ClearChange)] if rig.script is not None else []
        if not isinstance(change, FaultChange | ClearChange) or change in self._breaks or transmitter is None:
            return
        breaks = sorted([*self._breaks, replace(change, at_s=at_ns / 1e9)], key=lambda each: each.at_ns or 0)
        network = network_faults(rig, breaks)
        acting = [fault for fault in network if min(fault.cut_ns, fault.spec.end_ns) > clock.now_ns() - _PAST_NS]
        if network != network_faults(rig, self._breaks) and not transmitter.set_faults(acting, clock.epoch_ns + at_ns - _PUBLISH_NS):
            raise _TooLateError(f"at_s must be later for the network to be broken or mended in time, got {at_ns / 1e9:.6f}")
        self._breaks = breaks

    def _prepared(self, change: ChangeSpec) -> PreparedChange:
        if not self._is_seen:
            check_unseen(self.context.rig, change)
        devices = [name for name, streaming in self.streams.items() if streaming.render_thread.renderer is not None]
        if devices:
            raise ConfigError(f'render.backend must be "cpu" for timed changes, got a GPU that renders {", ".join(devices)}')
        if self._state is None:
            self._state = RigState.at_start(self.context.rig, self.context.scenery(self.context.rig))
        state = self._state.after(change)
        return PreparedChange(former=self._state, state=state, lidars=self._changed_lidars(self._state, state))

    def _changed_lidars(self, former: RigState, state: RigState) -> dict[str, LidarEmulator]:
        """Lidars that differ, or see another world, in the new state."""
        found = {}
        for number, setting in enumerate(state.settings):
            if not is_changed(former, state, number):
                continue
            streaming = self.streams[setting.name]
            base = self._bases.setdefault(setting.name, streaming.lidar)
            found[setting.name] = lidar_after(base, streaming.lidar, state, number)
            size, most = int(found[setting.name].plan.data_size), streaming.render_thread.rings.payload.shape[2] - HEADER_SIZE
            if size > most:
                raise ConfigError(f"packets of {setting.name} must be at most {most} bytes in this run, got {size}; one with sensor.web may have any")
        return found

    def _publish_inserted(self, prepared: PreparedChange, at_ns: int) -> dict[str, int]:
        """Give a changed world to all inserters; returns the world's number in each, by the names of their replays."""
        world = prepared.state.inserted
        if world is None or world is prepared.former.inserted:
            return {}
        return {name: inserter.add(at_ns, world) for name, inserter in self._inserters().items()}

    def _inserters(self) -> dict[str, Inserter]:
        """Inserters into the points of replays that have not ended, by the names of the replays."""
        return {name: replay.inserter for name, replay in played(self.parts).items() if replay.inserter is not None and not replay.state().has_ended}

    def _await_inserted(self, name: str, number: int, at_ns: int) -> int:
        """Block until a replay shows a world, unless it is paused or has ended; returns the rig time at which the world begins."""
        replay, until_s = played(self.parts).get(name), time.monotonic() + _REPLAY_S
        if replay is None or replay.inserter is None:
            return at_ns
        while (begun_ns := replay.inserter.begun_ns(number)) is None or replay.inserter.next_ns < begun_ns:
            state = replay.state()
            if state.is_paused or state.has_ended or time.monotonic() > until_s:
                break
            time.sleep(_POLL_S)
        return at_ns if begun_ns is None else begun_ns

    def _publish(self, lidars: Mapping[str, LidarEmulator], at_ns: int) -> dict[str, int]:
        """Switch render threads to other lidars; returns the rig time at which each begins."""
        begun_ns: dict[str, int] = {}
        missing = dict.fromkeys(lidars, at_ns)
        for attempt in range(_TRIES):
            added = {name: self._add(self.streams[name], lidars[name], from_ns) for name, from_ns in missing.items()}
            begun_ns |= {name: self._await_beginning(self.streams[name], *each) for name, each in added.items()}
            margin_ns = _MARGIN_NS << (attempt + 1)
            missing = {name: _frontier_ns(self.streams[name]) + margin_ns for name, begin_ns in begun_ns.items() if begin_ns == REFUSED}
            if not missing:
                return begun_ns
        raise TransmitError(
            f"{', '.join(missing)}: a change of the rate or the returns must be in time, and {_TRIES} tries were not: this machine is too busy"
        )

    @staticmethod
    def _add(streaming: Streaming, lidar: LidarEmulator, at_ns: int) -> tuple[int, "LaterLidar"]:
        later = streaming.lidar.followed_by(lidar, at_ns)
        return streaming.render_thread.add_segment(later.begin_ns, later.lidar), later

    @staticmethod
    def _await_beginning(streaming: Streaming, number: int, later: "LaterLidar") -> int:
        """Block until the thread has rendered up to the beginning of a segment; returns that rig time, or ``REFUSED``."""
        thread, until_s = streaming.render_thread, time.monotonic() + _ANSWER_S
        while (begun_ns := thread.table.begun_ns(number) if thread.table else None) is None or _is_ahead(streaming, begun_ns):
            if time.monotonic() > until_s or not thread.alive:
                raise TransmitError(f"{streaming.spec.name}: the render thread must take a change within {_ANSWER_S:.0f} s, got no answer")
            time.sleep(_POLL_S)
        if begun_ns != REFUSED:
            streaming.lidar = thread.lidar = later.lidar
        return begun_ns


def _frontier_ns(streaming: Streaming) -> int:
    """Rig time of the first firing that the render thread has not begun to render."""
    thread, plan = streaming.render_thread, streaming.lidar.plan
    next_packet = int(thread.state.counters[RenderCounter.NEXT_PACKET])
    due_ns = thread.epoch_ns + int(data_deadline_ns(plan, next_packet))
    if due_ns - thread.lead_ns > time.monotonic_ns() + _UNTOUCHED_NS:  # a limited field of view: the packet waits for the other side of the gap
        return int(packet_start_ns(plan, next_packet))
    return int(packet_start_ns(plan, next_packet + 1))


def _is_ahead(streaming: Streaming, begun_ns: int) -> bool:
    """Whether the thread has not yet rendered up to a rig time, so that its packets will show what is visible then."""
    return begun_ns != REFUSED and _frontier_ns(streaming) < begun_ns


def _dated(change: ChangeSpec, clock: RigClock) -> ChangeSpec:
    """A change that depends on when the rig was started, with that time in it."""
    if not isinstance(change, ClockChange) or change.pps != "locked" or change.utc_epoch_ns is not None:
        return change
    return replace(change, utc_epoch_ns=clock.utc_epoch_ns)


def _recorded(change: ChangeSpec, at_ns: int, begun_ns: Mapping[str, int], seen_ns: Mapping[str, int]) -> MadeChange:
    """A change as it was made; ``begun_ns`` is of sensors and what acts, ``seen_ns`` of what sees the world beside them, at the change's time or later."""
    all_ns = {**begun_ns, **seen_ns}
    late_s = {name: begin_ns / 1e9 for name, begin_ns in all_ns.items() if begin_ns != at_ns}
    if isinstance(change, FaultChange):
        change = replace(change, fault=change.dated)  # its ramp and its end are counted from there, however late it comes
    # What was given a time keeps it: changes that came later than the next one still come before it in a script.
    if change.at_s is None and begun_ns and len(late_s) == len(all_ns) and len(set(late_s.values())) == 1:
        at_ns, late_s = next(iter(all_ns.values())), {}
    return MadeChange(change=replace(change, at_s=at_ns / 1e9, late_s=late_s), at_ns=at_ns, begun_ns=all_ns)
