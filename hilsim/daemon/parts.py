"""Parts of a running rig, with one life cycle and a shared context.

A part is one component that a rig requests and that runs while packets flow: the sensors, the serial devices, the sinks.
``daemon.part_list`` makes the parts of a rig; ``daemon.running_rig`` calls the steps of their life cycle:

``prepare`` → ``open`` → ``warm`` → ``prime`` → ``start`` → (``change``)* → ``stop``.

A part defines only the steps that it needs: the default of each does nothing.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

from hilsim.assembly.build import Scenery, asset_signature, build_scenery
from hilsim.config.part_kind import parts_of
from hilsim.config.rig import Rig
from hilsim.config.script import ChangeSpec
from hilsim.emulator.insertion.insertion import Inserter
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.setting import LidarSetting
from hilsim.errors import ConfigError
from hilsim.faults.specs import FaultSpec
from hilsim.protocols.ethernet import Framing
from hilsim.sensor.time_input import TimeInput
from hilsim.streaming.obstacle_map import ObstacleMap
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.readings import Reading
from hilsim.transmit.specs import FlowSpec
from hilsim.transmit.transmitter import Transmitter
from hilsim.world.platforms.live import LivePose
from hilsim.world.scene.world import World


class RigClock(NamedTuple):
    """Instant of rig time 0.

    Attributes:
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        utc_epoch_ns: UTC of rig time 0.
        begin_ns: CLOCK_MONOTONIC time from which this daemon sends: rig time 0, or later where it joins a world that other daemons have begun.
    """

    epoch_ns: int = 0
    utc_epoch_ns: int = 0
    begin_ns: int = 0


class Needs(NamedTuple):
    """Requirements on the transmitter's size.

    Attributes:
        flows: Number of flows open at once.
        capacity_bytes: Size of the largest datagram or frame.
        packet_rate_hz: Packets a second of all flows together.
        queues: Number of sinks.
    """

    flows: int = 0
    capacity_bytes: int = 0
    packet_rate_hz: float = 0.0
    queues: int = 0


Say = Callable[[str, Mapping[str, object]], None]
"""Function that takes a dotted event name and its keys."""

Viewer = Callable[[int, World], Mapping[str, int] | None]
"""Function that takes a rig time and the world from then on, and returns the rig time from which each thing of a name sees it, if a script lists it."""

Breaker = Callable[[int, tuple[FaultSpec, ...]], Mapping[str, int] | None]
"""Likewise for the rig's faults from a rig time on, of which each takes those that befall it."""

FlowListener = Callable[[int, str, Framing, str], None]
"""Function that takes a flow's number (``Transmitter.flow_number``), its name, the headers of its frames and ``SinkFlow.stack`` before its first datagram is sent."""


class Actor(Protocol):
    """Maker of timed changes of one kind."""

    @property
    def is_running(self) -> bool:
        """Whether changes can be made."""

    def check(self, change: Any) -> None:
        """Find out whether a change can be made.

        Raises:
            ConfigError: it cannot be made of the rig as it is.
        """

    def make(self, change: Any, now_ns: int) -> tuple[int, dict[str, int]]:
        """Make a change; ``now_ns`` is the rig time now.

        Returns:
            Rig time at which it begins, and the same by the name of each thing that it changes.

        Raises:
            ConfigError: it cannot be made of the rig as it is; nothing was changed.
            TransmitError: a thread does not answer.
        """


class Played(Protocol):
    """A recording that is played as packets."""

    @property
    def inserter(self) -> Inserter | None:
        """What puts objects of the scene into its points; None: nothing does."""

    @property
    def notes(self) -> Iterable[str]:
        """Remarks on it for the operator."""

    def state(self) -> Any:
        """Present state, with ``position_s``, ``is_paused``, ``has_ended`` and ``fault``, the reason that it ended early; wait-free."""

    def pause(self, *, paused: bool) -> None:
        """Pause it, or continue."""

    def seek(self, position_s: float) -> None:
        """Continue at a recorded time."""


@dataclass(kw_only=True, eq=False)
class RigContext:
    """Context shared by the parts of one running rig.

    Attributes:
        rig: Present rig.
        clock: Instant of rig time 0.
        rendered_ns: Rig time up to which packets were rendered when the parts start.
        say: Callback for events that report what was changed for rendering to keep up.
        rows: Names of the transmitter's rows, ``"<sensor>/<flow>"``.
        obstacle_map: Function that makes the obstacle map for the returns of a lidar; None without a reader.
        flow_listeners: Callbacks for every new flow.
        played: Recordings that play, by name.
        viewers: Functions that show the world of all sensors to what else looks at it, from a rig time on, by a name for people.
        breakers: Functions that give the rig's faults to what they befall beside sensors, from a rig time on, by a name for people.
        actors: Makers of the timed changes that are not of sensors or of what they see, by the kind of the change.
        make_change: Function that makes a timed change at its time; available while the parts serve.
        present_sensor: Function that gives the lidar of a sensor as it is now, and whether its lasers fire; KeyError for an unknown name.
        time_inputs: GPS inputs of sensors that something outside is connected to, by the sensors' names.
        has_begun: Whether all parts have started.
        is_changed: Whether timed changes have made another rig of it than its file has.
        can_change: Whether sensors and what they see can be changed at rig times.
    """

    rig: Rig
    clock: RigClock = field(default_factory=RigClock)
    rendered_ns: int = 0
    say: Say = lambda _event, _keys: None
    rows: dict[int, str] = field(default_factory=dict)
    obstacle_map: Callable[[LidarSetting], ObstacleMap | None] | None = None
    flow_listeners: list[FlowListener] = field(default_factory=list)
    played: dict[str, Played] = field(default_factory=dict)
    viewers: dict[str, Viewer] = field(default_factory=dict)
    breakers: dict[str, Breaker] = field(default_factory=dict)
    actors: dict[str, Actor] = field(default_factory=dict)
    make_change: Callable[[ChangeSpec], Awaitable[object]] | None = None
    present_sensor: Callable[[str], tuple[LidarEmulator, bool]] | None = None
    time_inputs: dict[str, TimeInput] = field(default_factory=dict)
    has_begun: bool = False
    is_changed: bool = False
    can_change: bool = False
    transmitter_or_none: Transmitter | None = None
    _shown: "_Shown | None" = None
    _built: "_Shown | None" = None

    @property
    def transmitter(self) -> Transmitter:
        """Transmitter, available after opening."""
        if self.transmitter_or_none is None:
            raise AssertionError("a rig is opened before it is used")
        return self.transmitter_or_none

    def scenery(self, rig: Rig) -> Scenery:
        """Scene of a rig, built again only if the rig or one of its files has changed.

        Raises:
            AssetError: a file cannot be used.
        """
        key = _scene_key(rig)
        for known in (self._shown, self._built):
            if known is not None and known.key == key:
                return known.scenery
        shown = _Shown(key, build_scenery(rig))
        if rig is self.rig and self._shown is None:
            self._shown = shown
        else:
            self._built = shown
        return shown.scenery

    def shows(self, rig: Rig) -> bool:
        """Whether another rig has the present scene."""
        return self._shown is not None and self._shown.key == _scene_key(rig)

    def settle(self, rig: Rig) -> None:
        """Become another rig."""
        self.rig = rig
        if self._built is not None and self._built.key == _scene_key(rig):
            self._shown = self._built
        self._built = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the scene's files for the operator."""
        return self._shown.scenery.notes if self._shown is not None else ()

    @property
    def live_pose(self) -> LivePose | None:
        """Poses of a platform that a controller or a part moves; None without one."""
        return self._shown.scenery.live if self._shown is not None else None

    def chosen(self, name: str = "") -> dict[str, Played]:
        """Recordings that play, by name; the one of a name, if it is given.

        Raises:
            ConfigError: none has this name.
        """
        found = dict(self.played)
        if name and name not in found:
            raise ConfigError(f"a replay must be one of {', '.join(found) or '(none)'}, got {name}")
        return {name: found[name]} if name else found

    @property
    def inserters(self) -> dict[str, Inserter]:
        """What puts objects of the scene into recordings that have not ended, by the names of the recordings."""
        played = dict(self.played)
        return {name: each.inserter for name, each in played.items() if each.inserter is not None and not each.state().has_ended}

    @property
    def is_seen(self) -> bool:
        """Whether anything but sensors looks at the scene of the rig."""
        return bool(self.viewers) or any(each.inserter is not None for each in dict(self.played).values())

    def introduce_flow(self, number: int, name: str, framing: Framing, stack: str = "") -> None:
        """Announce a flow to all listeners, before its first datagram is sent; ``stack`` as in ``SinkFlow``."""
        for listener in self.flow_listeners:
            listener(number, name, framing, stack)


class _Shown(NamedTuple):
    key: tuple[object, ...]
    scenery: Scenery


def _scene_key(rig: Rig) -> tuple[object, ...]:
    moving = tuple((specs, rig.settings.get(kind.table)) for kind, specs in parts_of(rig.spec) if kind.moves or kind.carries)
    return rig.spec.scene, rig.spec.platform, rig.spec.seed, moving, asset_signature(rig)


class Change:
    """Prepared change of a part to another rig; nothing is changed before ``make``."""

    @property
    def flows(self) -> Sequence[FlowSpec]:
        """Flows to be opened; their sockets are held before any part changes."""
        return ()

    @property
    def retired(self) -> Sequence[FlowSpec]:
        """Flows that end or change."""
        return ()

    def make(self) -> tuple[str, ...]:
        """Make the change while packets flow; returns one sentence for each thing that was done."""
        return ()


class Part:
    """One part of a running rig.

    Attributes:
        context: Context that all parts share.
        follows_sending: Whether the part is stopped after the last datagram was sent, not before.
    """

    follows_sending: ClassVar[bool] = False

    def __init__(self, context: RigContext) -> None:
        self.context = context

    # -- the life cycle ----------------------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Read and check all that the rig requests of this part, without opening anything.

        Raises:
            HilsimError: a file or a setting cannot be used.
        """

    def needs(self) -> Needs:
        """Requirements on the transmitter's size; read between ``prepare`` and ``open``."""
        return Needs()

    def open(self) -> None:
        """Open flows, ports and files. ``context.transmitter`` is available; nothing is sent.

        Raises:
            HilsimError: a flow, port or file cannot be opened.
        """

    def warm(self) -> None:
        """Load every kernel, and do other work that would cost time later; all parts are open."""

    def rehearse(self) -> None:
        """Load or compile every kernel without opening a port or a file, for a process that compiles ahead."""

    def prime(self, until_ns: int) -> bool:
        """Prepare the first packets for ``context.clock``; nothing is sent before ``start``.

        Returns:
            Whether they were ready by CLOCK_MONOTONIC ``until_ns``. If not, the clock is set again and this is called again.
        """
        del until_ns
        return True

    def start(self) -> None:
        """Start; rig time 0 is at ``context.clock``, in the near future."""

    def change(self, rig: Rig) -> Change:
        """Prepare a change to another rig while packets flow, without changing anything.

        Raises:
            ConfigError: this change of the part needs a restart.
            HilsimError: a file, port or setting of the rig cannot be used.
        """
        del rig
        return Change()

    def stop(self) -> None:
        """End every thread and close every port; may be called before ``open``, and again."""

    # -- beside it ---------------------------------------------------------------------------------------------------------------------

    def serve(self) -> AbstractAsyncContextManager[object]:
        """Run tasks on the event loop while packets flow, such as ports to which clients connect."""
        return nullcontext()

    def pace(self, now_ns: int) -> None:
        """Adapt to the machine's load; called twice a second, by any thread."""

    def leave_real_time(self) -> None:
        """Leave real-time scheduling permanently; a signal handler may call it."""

    @property
    def has_begun(self) -> bool:
        """Whether all flows that begin at once have sent packets."""
        return True

    @property
    def summary(self) -> str:
        """Text for the operator with the number of what runs, empty for none."""
        return ""

    def lines(self) -> Iterable[tuple[str, str]]:
        """Name of each thing that runs, with its addresses or topics, for the terminal."""
        return ()

    def check_notes(self) -> Iterable[str]:
        """Remarks of ``hilsim check``, after ``prepare``."""
        return ()

    def totals(self) -> dict[str, int]:
        """Figures for the log at the rig's end."""
        return {}

    def add_reading(self, reading: Reading, now_ns: int) -> Reading:
        """Add the values of this part to a reading; wait-free."""
        del now_ns
        return reading

    def faults(self, now_ns: int) -> tuple[Fault, ...]:
        """Faults of this part; losses are judged by ``health``."""
        del now_ns
        return ()
