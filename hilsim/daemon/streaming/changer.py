"""Timed changes of a running rig: prepared beside the stream, published to every render thread for one rig time, and recorded with the time they began.

A change begins with a firing that no render thread has rendered yet, some milliseconds after the newest one. A thread that has rendered beyond it by the
time it sees the change (after a stall of the machine) begins later; the change is then recorded with that thread's own time.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hilsim.assembly.changed import RigState, check_unseen, is_changed, lidar_after
from hilsim.config.script import ChangeSpec, ClockChange, FaultChange
from hilsim.daemon.parts import Actor, RigContext
from hilsim.daemon.streaming.stream import Streaming
from hilsim.emulator.changing.segments import REFUSED
from hilsim.emulator.insertion.insertion import CAPACITY
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.schedule import data_deadline_ns, packet_start_ns
from hilsim.errors import ConfigError, TransmitError
from hilsim.faults.specs import FaultSpec
from hilsim.protocols.ethernet import HEADER_SIZE
from hilsim.streaming.render_state import RenderCounter

if TYPE_CHECKING:
    from hilsim.emulator.lidar import LaterLidar

_MARGIN_NS = 3_000_000
"""Time from the newest firing that may have been rendered to the firing that a change begins with; publishing takes a fraction of it."""
_UNTOUCHED_NS = 10_000_000
"""Time before the lead of a packet's deadline in which its rendering cannot have begun."""
_FAULT_AHEAD_NS = 20_000_000
"""Time from a request for a fault to its begin, in which it is prepared."""
_TRIES = 5
"""Each with twice the margin of the one before."""
_ANSWER_S = 5.0
_REPLAY_S = 0.1
"""Longest wait for a replay that shows a change: nothing may be due of it for longer."""
_POLL_S = 0.0002


@dataclass(frozen=True, kw_only=True)
class MadeChange:
    """A change that has been made.

    Attributes:
        change: The change, with the ``at_s`` and ``late_s`` that a script needs to give the same packets.
        at_ns: Rig time at which it began.
        begun_ns: Rig time at which it began for each sensor that it concerns.
        is_scripted: Whether the rig's script made it.
    """

    change: ChangeSpec
    at_ns: int
    begun_ns: Mapping[str, int]
    is_scripted: bool = False


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
        context: Context of the rig.
        streams: Sensors of the rig, by name.
        pacing: Lock held while lidars change, because the pacer replaces their render threads.
        made: Changes since the rig was started or reloaded, in their order.
        lock: Lock held while a change is made or prepared; a reload holds it until the new rig runs.
    """

    context: RigContext
    streams: Mapping[str, Streaming]
    pacing: threading.Lock
    made: list[MadeChange] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    _state: RigState | None = None
    _bases: dict[str, LidarEmulator] = field(default_factory=dict)

    def forget(self) -> None:
        """Forget all changes, after the rig's file has been loaded again."""
        self.made = []
        self.context.is_changed = False
        self._state = None
        self._bases = {}

    @property
    def dark(self) -> frozenset[int]:
        """Places in the rig of the sensors whose lasers do not fire."""
        return self._state.dark if self._state is not None else frozenset()

    @property
    def faults(self) -> tuple[FaultSpec, ...]:
        """Faults that have not been cleared; some may have ended."""
        return self._state.faults if self._state is not None else self.context.rig.spec.fault

    @property
    def is_running(self) -> bool:
        """Whether everything that can change runs, so that changes can be made."""
        has_begun = self.context.has_begun and all(actor.is_running for actor in self.context.actors.values())
        return has_begun and all(streaming.render_thread.alive for streaming in dict(self.streams).values())

    def object_names(self) -> list[str]:
        """Names of the objects that exist now."""
        if self._state is not None:
            return self._state.object_names
        return [thing.name for thing in self.context.scenery(self.context.rig).objects] if self.streams or self.context.is_seen else []

    def earliest_ns(self) -> int:
        """Earliest rig time at which a change published now takes effect for all sensors together."""
        rendered_ns = [_frontier_ns(streaming) for streaming in dict(self.streams).values()]
        return max([self._now_ns(), *rendered_ns, *(inserter.next_ns for inserter in self.context.inserters.values())]) + _MARGIN_NS

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self.context.clock.epoch_ns

    def prepare(self, change: ChangeSpec) -> PreparedChange | None:
        """Prepare a change for ``make`` without changing the rig; None if there is nothing to prepare. The result is valid until another change is made.

        Raises:
            ConfigError: the change cannot be made of the rig as it is.
            AssetError: a file cannot be used.
        """
        with self.lock:
            return None if change.kind in self.context.actors else self._prepared(change)

    def make(
        self, change: ChangeSpec, *, is_scheduled: bool = False, is_scripted: bool = False, prepared: PreparedChange | None = None
    ) -> MadeChange:
        """Make a change; returns some milliseconds later, when every render thread has begun with it.

        Args:
            change: The change, now or at a rig time not far ahead.
            is_scheduled: Whether the change was accepted for a time that may have passed meanwhile; it is then made late.
            is_scripted: Whether the rig's script makes it.
            prepared: Result of ``prepare`` for this change, if it was called.

        Raises:
            ConfigError: the change cannot be made of the rig as it is, or would begin with firings that have been rendered; nothing was changed.
            AssetError: a file cannot be used; nothing was changed.
            TransmitError: a render thread does not answer.
        """
        actor = self.context.actors.get(change.kind)
        if actor is not None:
            return self._act(actor, change, is_scheduled=is_scheduled, is_scripted=is_scripted)
        with self.lock, self.pacing:
            if isinstance(change, FaultChange) and change.at_ns is None:
                change = replace(change, at_s=(self.earliest_ns() + _FAULT_AHEAD_NS) / 1e9)  # its ramp and its end are counted from there
                is_scheduled = True
            if prepared is None or prepared.former is not self._state:
                prepared = self._prepared(change)
            earliest_ns = self.earliest_ns()
            if change.at_ns is not None and change.at_ns < earliest_ns and not is_scheduled:
                raise ConfigError(f"at_s must be {earliest_ns / 1e9:.6f} or later now, got {change.at_s}")
            at_ns = earliest_ns if change.at_ns is None else change.at_ns
            full = [name for name, inserter in self.context.inserters.items() if not inserter.has_room]
            if full:
                raise ConfigError(f"at most {CAPACITY - 1} changes may wait for a replay to resume, got one more for {', '.join(full)}")
            numbers = self._publish_inserted(prepared, at_ns)
            begun_ns = self._publish(prepared.lidars, at_ns)
            begun_ns |= {name: self._await_inserted(name, number, at_ns) for name, number in numbers.items()}
            seen_ns: dict[str, int] = {}
            if prepared.state.world is not prepared.former.world:
                for see_later in dict(self.context.viewers).values():
                    seen_ns |= see_later(at_ns, prepared.state.world) or {}
            if prepared.state.faults != prepared.former.faults:
                for break_later in dict(self.context.breakers).values():
                    seen_ns |= break_later(at_ns, prepared.state.faults) or {}
            self._state, self.context.is_changed = prepared.state, True
            made = replace(_recorded(self._dated(change), at_ns, begun_ns, seen_ns), is_scripted=is_scripted)
            self.made.append(made)
            return made

    def _act(self, actor: Actor, change: ChangeSpec, *, is_scheduled: bool, is_scripted: bool) -> MadeChange:
        with self.lock:
            now_ns = self._now_ns()
            if change.at_ns is not None and change.at_ns < now_ns and not is_scheduled:
                raise ConfigError(f"at_s must be {now_ns / 1e9:.6f} or later now, got {change.at_s}")
            made = replace(_recorded(change, *actor.make(change, now_ns), {}), is_scripted=is_scripted)
            self.made.append(made)
            return made

    def _dated(self, change: ChangeSpec) -> ChangeSpec:
        """A change that depends on when the rig was started, with that time in it."""
        if not isinstance(change, ClockChange) or change.pps != "locked" or change.utc_epoch_ns is not None:
            return change
        return replace(change, utc_epoch_ns=self.context.clock.utc_epoch_ns)

    def _prepared(self, change: ChangeSpec) -> PreparedChange:
        if not self.streams and not self.context.is_seen:
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
        return {name: inserter.add(at_ns, world) for name, inserter in self.context.inserters.items()}

    def _await_inserted(self, name: str, number: int, at_ns: int) -> int:
        """Block until a replay shows a world, unless it is paused or has ended; returns the rig time at which the world begins."""
        replay, until_s = self.context.played.get(name), time.monotonic() + _REPLAY_S
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


def _recorded(change: ChangeSpec, at_ns: int, begun_ns: Mapping[str, int], seen_ns: Mapping[str, int]) -> MadeChange:
    """A change as it was made; ``begun_ns`` is of sensors and what acts, ``seen_ns`` of what sees the world beside them, at the change's time or later."""
    all_ns = {**begun_ns, **seen_ns}
    late_s = {name: begin_ns / 1e9 for name, begin_ns in all_ns.items() if begin_ns != at_ns}
    if isinstance(change, FaultChange):
        change = replace(change, fault=change.dated)  # its ramp and its end are counted from there, however late it comes
    if begun_ns and len(late_s) == len(all_ns) and len(set(late_s.values())) == 1:
        at_ns, late_s = next(iter(all_ns.values())), {}
    return MadeChange(change=replace(change, at_s=at_ns / 1e9, late_s=late_s), at_ns=at_ns, begun_ns=all_ns)
