"""Parts of a running rig, with one life cycle.

A part is one component that a rig requests and that runs while packets flow: the sensors, the serial devices, the sinks.
``daemon.part_list`` makes the parts of a rig; ``daemon.running_rig`` calls the steps of their life cycle:

``prepare`` → ``open`` → ``warm`` → ``prime`` → ``start`` → (``change``)* → ``stop``.

A part defines only the steps that it needs: the default of each does nothing.
Each step gets what exists from then on: the flows, the clock, the timed changes. What a part has for others it is asked for (``viewer``, ``actors`` …).
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from hilsim.assembly.build import Scenery, asset_signature, build_scenery
from hilsim.config.part_kind import parts_of
from hilsim.config.rig import Rig, takes_timed_changes
from hilsim.config.script import ChangeSpec
from hilsim.daemon.flows import Flows
from hilsim.emulator.insertion.insertion import Inserter
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.setting import LidarSetting
from hilsim.errors import ConfigError
from hilsim.faults.specs import FaultSpec
from hilsim.protocols.ethernet import Framing
from hilsim.streaming.obstacle_map import ObstacleMap
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.readings import Reading
from hilsim.transmit.specs import FlowSpec
from hilsim.world.platforms.live import LivePose
from hilsim.world.scene.world import World


class RigClock(NamedTuple):
    """Instant of rig time 0.

    Attributes:
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        utc_epoch_ns: UTC of rig time 0.
        begin_ns: CLOCK_MONOTONIC time from which this daemon sends: rig time 0, or later where it joins a world that other daemons have begun.
        rendered_ns: Rig time up to which packets were rendered when the parts start.
    """

    epoch_ns: int = 0
    utc_epoch_ns: int = 0
    begin_ns: int = 0
    rendered_ns: int = 0

    def now_ns(self) -> int:
        """Rig time now."""
        return time.monotonic_ns() - self.epoch_ns


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


class Actor(Protocol):
    """Maker of timed changes of one kind."""

    def make(self, change: Any, clock: RigClock) -> tuple[int, dict[str, int]]:
        """Make a change.

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


@dataclass(frozen=True, kw_only=True)
class MadeChange:
    """A timed change that has been made.

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


class Changes(ABC):
    """Timed changes of a running rig, for what serves clients; they may be asked for before packets flow."""

    def __init__(self) -> None:
        self._clock: RigClock | None = None
        self._has_begun = asyncio.Event()

    def begin(self, clock: RigClock) -> None:
        """Make changes from now on: packets flow; to be called on the event loop."""
        self._clock = clock
        self._has_begun.set()

    @property
    def clock(self) -> RigClock:
        """Instant of rig time 0; while packets do not flow yet: now."""
        return self._clock or RigClock(time.monotonic_ns(), time.time_ns())

    async def begun(self) -> RigClock:
        """Wait until packets flow."""
        await self._has_begun.wait()
        return self.clock

    @abstractmethod
    async def make(self, change: ChangeSpec) -> MadeChange:
        """Make a change at its time, or now; returns when packets contain it.

        Raises:
            ConfigError: the change cannot be made, its time has passed, or too many changes wait.
            AssetError: a file cannot be used.
            TransmitError: the rig ends before that, or a render thread does not answer.
        """

    @abstractmethod
    def lidar(self, name: str) -> tuple[LidarEmulator, bool]:
        """Lidar of a sensor as it is now, and whether its lasers fire; KeyError for an unknown name."""


@dataclass(kw_only=True, eq=False)
class RigContext:
    """The rig that the parts belong to, and its scene.

    Attributes:
        rig: Present rig.
        say: Callback for events that report what was changed for rendering to keep up.
        is_changed: Whether timed changes have made another rig of it than its file has.
    """

    rig: Rig
    say: Say = lambda _event, _keys: None
    is_changed: bool = False
    _shown: "_Shown | None" = None
    _built: "_Shown | None" = None

    @property
    def can_change(self) -> bool:
        """Whether sensors and what they see can be changed at rig times."""
        return takes_timed_changes(self.rig)

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
        """Become another rig, as its file has it."""
        self.rig, self.is_changed = rig, False
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


class _Shown(NamedTuple):
    key: tuple[object, ...]
    scenery: Scenery


def _scene_key(rig: Rig) -> tuple[object, ...]:
    moving = tuple((specs, rig.settings.get(kind.table)) for kind, specs in parts_of(rig.spec) if kind.moves or kind.carries)
    return rig.spec.scene, rig.spec.platform, rig.spec.seed, moving, asset_signature(rig)


class Change:
    """Prepared change of a part to another rig; nothing is changed before ``make``."""

    def __init__(self, then: Callable[[RigClock], None] = lambda _clock: None) -> None:
        """Change nothing but what ``then`` does."""
        self._then = then

    @property
    def flows(self) -> Sequence[FlowSpec]:
        """Flows to be opened; their sockets are held before any part changes."""
        return ()

    @property
    def retired(self) -> Sequence[FlowSpec]:
        """Flows that end or change."""
        return ()

    def make(self, clock: RigClock) -> tuple[str, ...]:
        """Make the change while packets flow; returns one sentence for each thing that was done."""
        self._then(clock)
        return ()


class Part:
    """One part of a running rig.

    Attributes:
        context: The rig, and its scene.
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

    def open(self, flows: Flows) -> None:
        """Open flows, ports and files; nothing is sent.

        Raises:
            HilsimError: a flow, port or file cannot be opened.
        """

    def warm(self) -> None:
        """Load every kernel, and do other work that would cost time later; all parts are open."""

    def rehearse(self) -> None:
        """Load or compile every kernel without opening a port or a file, for a process that compiles ahead."""

    def prime(self, clock: RigClock, until_ns: int) -> bool:
        """Prepare the first packets; nothing is sent before ``start``.

        Returns:
            Whether they were ready by CLOCK_MONOTONIC ``until_ns``. If not, this is called again with another clock.
        """
        del clock, until_ns
        return True

    def start(self, clock: RigClock) -> None:
        """Start; rig time 0 is in the near future."""

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

    def serve(self, changes: Changes) -> AbstractAsyncContextManager[object]:
        """Run tasks on the event loop, such as ports to which clients connect; packets flow soon (``Changes.begun``)."""
        del changes
        return nullcontext()

    def pace(self, now_ns: int) -> None:
        """Adapt to the machine's load; called twice a second, by any thread."""

    def leave_real_time(self) -> None:
        """Leave real-time scheduling permanently; a signal handler may call it."""

    def add_flow(self, number: int, name: str, framing: Framing, stack: str) -> None:
        """Learn of a flow of any part before its first datagram is sent: a ``FlowListener``."""

    @property
    def viewer(self) -> Viewer | None:
        """Function that shows it the world of all sensors from a rig time on; None where it does not look at the scene."""
        return None

    @property
    def breaker(self) -> Breaker | None:
        """Function that gives it the rig's faults from a rig time on; None where none befalls it, or only as a sensor or what sends."""
        return None

    @property
    def actors(self) -> Mapping[str, Actor]:
        """Makers of timed changes that are not of sensors or of what they see, by the kind of the change."""
        return {}

    @property
    def played(self) -> Mapping[str, Played]:
        """Recordings that play, by name."""
        return {}

    def obstacle_map(self, setting: LidarSetting) -> ObstacleMap | None:
        """Make an obstacle map for the returns of a lidar that is about to stream; None if this part reads none of it."""
        del setting
        return None

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


def played(parts: Iterable[Part], name: str = "") -> dict[str, Played]:
    """Recordings that play, by name; the one of a name, if it is given.

    Raises:
        ConfigError: none has this name.
    """
    found = {each: recording for part in tuple(parts) for each, recording in part.played.items()}
    if name and name not in found:
        raise ConfigError(f"a replay must be one of {', '.join(found) or '(none)'}, got {name}")
    return {name: found[name]} if name else found
