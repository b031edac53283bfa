"""What a running rig is made of: parts with one life cycle, and what they share.

A part is one thing that a rig asks for and that runs while packets flow: the sensors, the replays, the vehicle, the serial devices, the sinks.
``daemon.part_list`` names every kind of part; ``daemon.running_rig`` takes them through their life:

``prepare`` → ``open`` → ``warm`` → ``prime`` → ``start`` → (``change``)* → ``stop``.

A part defines only the verbs that it needs: each has a default that does nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from hilsim.assembly.build import Scenery, asset_signature, build_scenery
from hilsim.autopilot.obstacle_map import ObstacleMap
from hilsim.config.rig import Rig
from hilsim.emulator.setting import LidarSetting
from hilsim.protocols.ethernet import Framing
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.readings import Reading
from hilsim.transmit.specs import FlowSpec
from hilsim.transmit.transmitter import Transmitter


class RigClock(NamedTuple):
    """When rig time 0 is.

    Attributes:
        epoch_ns: On CLOCK_MONOTONIC.
        utc_epoch_ns: In UTC.
    """

    epoch_ns: int = 0
    utc_epoch_ns: int = 0


class Needs(NamedTuple):
    """What the transmitter must have room for.

    Attributes:
        flows: Flows that are open at once.
        capacity_bytes: The largest datagram or frame.
        packet_rate_hz: Of all flows together.
        queues: Sinks that follow what is sent.
    """

    flows: int = 0
    capacity_bytes: int = 0
    packet_rate_hz: float = 0.0
    queues: int = 0


Say = Callable[[str, Mapping[str, object]], None]
"""Takes a dotted event and its keys."""

FlowListener = Callable[[int, str, Framing], None]
"""Is given a flow's number (``Transmitter.flow_number``), its name and the headers of its frames before its first datagram is sent."""


@dataclass(kw_only=True, eq=False)
class RigContext:
    """What the parts of one running rig share.

    Attributes:
        rig: What is emulated now.
        clock: When its time began.
        say: Takes an event and its keys: what was changed for rendering to keep up.
        rows: Names of the transmitter's rows, ``"<sensor>/<flow>"``.
        obstacle_map: Makes what a lidar on a vehicle writes its returns into; None without a reader.
        flow_listeners: Who is to know of every flow.
        can_change: Its sensors and what they see can be changed at rig times.
    """

    rig: Rig
    clock: RigClock = field(default_factory=RigClock)
    say: Say = lambda _event, _keys: None
    rows: dict[int, str] = field(default_factory=dict)
    obstacle_map: Callable[[LidarSetting], ObstacleMap | None] | None = None
    flow_listeners: list[FlowListener] = field(default_factory=list)
    can_change: bool = False
    transmitter_or_none: Transmitter | None = None
    _shown: "_Shown | None" = None
    _built: "_Shown | None" = None

    @property
    def transmitter(self) -> Transmitter:
        """What sends, from opening on."""
        if self.transmitter_or_none is None:
            raise AssertionError("a rig is opened before it is used")
        return self.transmitter_or_none

    def scenery(self, rig: Rig) -> Scenery:
        """What there is to see in a rig; built anew only when the rig or a file of it has changed.

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
        """Whether what is seen now is what there is to see in another rig."""
        return self._shown is not None and self._shown.key == _scene_key(rig)

    def settle(self, rig: Rig) -> None:
        """Become another rig."""
        self.rig = rig
        if self._built is not None and self._built.key == _scene_key(rig):
            self._shown = self._built
        self._built = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of the scene's files."""
        return self._shown.scenery.notes if self._shown is not None else ()

    def introduce_flow(self, number: int, name: str, framing: Framing) -> None:
        """Announce a flow to all followers of the stream, before its first datagram is sent."""
        for listener in self.flow_listeners:
            listener(number, name, framing)


class _Shown(NamedTuple):
    key: tuple[object, ...]
    scenery: Scenery


def _scene_key(rig: Rig) -> tuple[object, ...]:
    return rig.spec.scene, rig.spec.platform, rig.spec.seed, rig.spec.vehicle, rig.vehicle, asset_signature(rig)


class Change:
    """What another rig changes of a part, made ready aside; nothing is changed before ``make``."""

    @property
    def flows(self) -> Sequence[FlowSpec]:
        """Flows that are to be opened: their sockets are held before any part changes."""
        return ()

    @property
    def retired(self) -> Sequence[FlowSpec]:
        """Flows that end or change."""
        return ()

    def make(self) -> tuple[str, ...]:
        """Change while packets flow; returns what was done, one sentence a thing."""
        return ()


class Part:
    """One part of a running rig.

    Attributes:
        context: What it shares with the others.
        follows_sending: It is stopped after the last datagram was sent, not before.
    """

    follows_sending: ClassVar[bool] = False

    def __init__(self, context: RigContext) -> None:
        self.context = context

    # -- the life cycle ----------------------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Read and check everything that the rig asks for of this part; open nothing.

        Raises:
            HilsimError: it cannot be had.
        """

    def needs(self) -> Needs:
        """What the transmitter must have room for; asked between ``prepare`` and ``open``."""
        return Needs()

    def open(self) -> None:
        """Open flows, ports and files. ``context.transmitter`` is there; nothing is sent.

        Raises:
            HilsimError: one cannot be had.
        """

    def warm(self) -> None:
        """Load every kernel, and do what would cost time later; every part is open."""

    def rehearse(self) -> None:
        """Load or compile every kernel without a port or a file, for a process that compiles ahead."""

    def prime(self, until_ns: int) -> bool:
        """Have ready what is due first, for ``context.clock``; nothing is sent before ``start``.

        Returns:
            Whether it was ready by CLOCK_MONOTONIC ``until_ns``. If not, the clock is set again and this is called again.
        """
        del until_ns
        return True

    def start(self) -> None:
        """Begin; rig time 0 is ``context.clock``, a moment from now."""

    def change(self, rig: Rig) -> Change:
        """Make ready what another rig needs while packets flow; nothing is changed by it.

        Raises:
            ConfigError: this part cannot change so without a restart.
            HilsimError: something that the rig names cannot be had.
        """
        del rig
        return Change()

    def stop(self) -> None:
        """End every thread and close every port; also when it was never opened, and again."""

    # -- beside it ---------------------------------------------------------------------------------------------------------------------

    def serve(self) -> AbstractAsyncContextManager[object]:
        """What runs on the event loop while packets flow: ports that others connect to."""
        return nullcontext()

    def pace(self, now_ns: int) -> None:
        """Keep within what the machine has; called twice a second, by any thread."""

    def leave_real_time(self) -> None:
        """Leave real-time scheduling for good; a signal's handler may call it."""

    @property
    def has_begun(self) -> bool:
        """Whether everything that is to send at once has sent."""
        return True

    @property
    def summary(self) -> str:
        """How many of what run, for a person; empty where there is nothing."""
        return ""

    def totals(self) -> dict[str, int]:
        """Figures for the log when the rig has ended."""
        return {}

    def add_reading(self, reading: Reading, now_ns: int) -> Reading:
        """A reading with what a scrape shows of this part; wait-free."""
        del now_ns
        return reading

    def faults(self, now_ns: int) -> tuple[Fault, ...]:
        """What is not as it should be; losses are judged by ``health``."""
        del now_ns
        return ()
