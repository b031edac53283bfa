"""What a kind of part is: a table of a rig, and all that the rest of hilsim asks about it.

The core asks each kind the same questions and knows none by its name; ``config.part_tables`` finds them. What runs is a ``daemon.parts.Part``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from hilsim.config.part_tables import part_kind
from hilsim.config.rig import Rig, RigSpec
from hilsim.config.script import ChangeSpec
from hilsim.errors import ConfigError
from hilsim.faults.catalogue import Place
from hilsim.faults.specs import FaultSpec
from hilsim.transmit.links.line import SerialSpec
from hilsim.transmit.specs import FlowSpec

S = TypeVar("S")


class BoundPort(NamedTuple):
    """A UDP port that a part binds.

    Attributes:
        address: IPv4 address of this host.
        port: Port; 0: any free one.
        key: Key of the rig that sets the port.
    """

    address: str
    port: int
    key: str


class PartKind(Generic[S]):
    """A kind of part. A kind defines what it needs: the defaults request nothing.

    The first line of its docstring is the meaning of the table in the reference.

    Attributes:
        table: Name of the table in a rig.
        spec: Frozen dataclass of a table, at the top level of its module.
        is_list: Whether a rig may have several tables, ``[[table]]``.
        destination: Keys that lead to a table's destination address, for ``--to`` and the names of hosts.
        destination_port: Keys that lead to its destination port, for ``--to``.
        moves: Whether it moves the platform or objects and sends nothing; its part starts before the sensors.
        carries: Whether it carries the sensors where ``platform.kind`` is its table's name; its part then starts before them.
        undivided: Reason that ``--only`` may not divide a rig with it; empty: it may.
        can_join: Whether it can begin in the middle of a world that other daemons have begun.
        can_reload: Whether a reload may change its tables while packets flow.
        viewer: Tables of it that see the scene, for messages; empty for none.
        inserts: Whether those that see it put its objects into recorded points: each object is then also a mover of a world of its own.
        is_sensor: Whether each table stands for sensors: names and flows (``name``; ``source``, ``destination``, ``destination_port``) of these and the rig's
            sensors differ, and a bound is for all together.
        writes_messages: Whether it records messages that are no packets (``write_messages``).
        faults: Keys of its faults, and their meanings.
        reading: Frozen dataclass of its metrics, with a ``name`` that is their label; None without metrics.
        losses: What is lost of what it plans, a ``telemetry.metrics.Losses`` each.
        late: Field of its reading that counts packets that were read only after they were due; empty for none.
    """

    table: ClassVar[str]
    spec: ClassVar[type[Any]]
    is_list: ClassVar[bool] = True
    destination: ClassVar[tuple[str, ...]] = ()
    destination_port: ClassVar[tuple[str, ...]] = ()
    moves: ClassVar[bool] = False
    carries: ClassVar[bool] = False
    undivided: ClassVar[str] = ""
    can_join: ClassVar[bool] = False
    can_reload: ClassVar[bool] = False
    viewer: ClassVar[str] = ""
    inserts: ClassVar[bool] = False
    is_sensor: ClassVar[bool] = False
    writes_messages: ClassVar[bool] = False
    faults: ClassVar[Mapping[str, str]] = {}
    reading: ClassVar[type[Any] | None] = None
    losses: ClassVar[Sequence[Any]] = ()
    late: ClassVar[str] = ""

    def part(self, context: Any) -> Any:
        """Make the ``daemon.parts.Part`` that runs for all tables of a rig; ``context`` is its ``RigContext``. None where ``devices`` are all."""
        return None

    def devices(self, rig: Rig, scenery: Callable[[], Any]) -> Sequence[Any]:
        """Make its devices on serial ports, which the daemon runs (``daemon.serial_devices.device.ConfiguredDevice``); ``scenery`` gives a ``Scenery``."""
        return ()

    def name(self, spec: S) -> str:
        """Name for ``--only``, by default that of the table; empty: it always runs."""
        return str(getattr(spec, "name", ""))

    def rules(self, rig: RigSpec) -> Iterable[tuple[bool, str]]:
        """Yield rules of all its tables together, and whether each holds."""
        return ()

    def setting(self, spec: S, number: int, rig: RigSpec, path: Path, faults: list[str]) -> Any:
        """What a table needs from other files, such as a profile: an entry of ``Rig.settings``. Faults are added to ``faults``.

        Args:
            spec: The table.
            number: Its number.
            rig: The rig.
            path: Path of the rig's file.
            faults: List of sentences that begin with a path.
        """

    def noise(self, table: Mapping[str, Any]) -> Iterable[tuple[str, ...]]:
        """Keys within an unchecked table that ``--no-noise`` sets to 0."""
        return ()

    def sees(self, spec: S) -> bool:
        """Whether it looks at the scene, which is then built."""
        return False

    def ports(self, spec: S) -> Iterable[BoundPort]:
        """UDP ports that it binds, for ``hilsim doctor``."""
        return ()

    def serial_port(self, spec: S) -> str:
        """Serial port that a table has for itself; empty for none."""
        return spec.port if isinstance(spec, SerialSpec) else ""

    def motion(self, rig: Rig, world: Any, until_ns: int | None, changes: Sequence[tuple[ChangeSpec, Any]]) -> Any:
        """Poses of the sensors that it ``carries`` in a world, from rig time 0 until another (``world.geometry.tracks.PoseTrack``), for rendering without a clock.

        ``changes`` concern it, or the world that it moves in, each with the world after it. Without ``until_ns``: poses that a thread goes on with (``world.platforms.live.LivePose``).

        Raises:
            ConfigError: it cannot start where it is, or cannot move without a clock.
        """
        raise NotImplementedError

    def befallen(self, specs: Sequence[S]) -> Iterable[tuple[Place, str]]:
        """Places of faults that can befall its tables, and the names that ``on`` of a fault matches there."""
        return ()

    def check_fault(self, rig: Rig, fault: FaultSpec) -> None:
        """Find out whether a fault that befalls its tables can be had with what they need from other files.

        Raises:
            ConfigError: it cannot.
        """

    def check_change(self, specs: Sequence[S], world: Any, change: ChangeSpec) -> None:
        """Find out whether a timed change of its own kind, ``change.kind``, can be made of its tables in a world; None: nothing in the rig sees one.

        Raises:
            ConfigError: it cannot be made; by default where there is no table.
        """
        if not specs:
            raise ConfigError(f"a rig must have a [{self.table}] for it to be changed, got none")

    def compiled_ahead(self, rig: Rig) -> tuple[str, Callable[[], None]] | None:
        """Module of a kernel that takes long to compile, and a function that compiles what it calls, in a process of its own; None for none."""
        return None

    def kernels(self, rig: Rig) -> Iterable[tuple[str, int]]:
        """Features of a rig that decide which kernels it needs, and the approximate number of kernels of each."""
        return ()

    def ready(self, spec: S, flows: Iterable[FlowSpec]) -> Iterable[Mapping[str, object]]:
        """Entries of a table in the file of ``--ready-file``; ``flows`` are all that the daemon sends now."""
        yield {"name": self.name(spec)}

    def sources(self, offline: Any, threads: int) -> Iterable[tuple[str, Any]] | None:
        """Names and sources of its packets without a clock (``offline.spans.OfflineSource``), each at its beginning; None: it cannot be recorded.

        By default none for a kind without a ``destination``, which sends nothing.

        Args:
            offline: The rig without a clock, an ``offline.spans.OfflineRig``.
            threads: Number of threads that each source may have.
        """
        return None if self.destination else ()

    def real_time(self, spec: S) -> str:
        """Why a rig cannot be rendered without a clock: it moves things as poses come, with a short lead, and adds some; empty: it can."""
        return ""

    def files(self, spec: S) -> Iterable[str]:
        """Files of the scene that it names, relative to the rig."""
        return ()

    def moved(self, rig: Rig, spec: S, others: Sequence[Any]) -> Any:
        """What it ``moves`` (``assembly.moved.MovedScene``); ``others`` are the objects of the scene."""
        raise NotImplementedError

    def step(self, rig: Rig, spec: S) -> Callable[[], Callable[[int, Any], None]] | None:
        """Refuse to be stepped by a program (``offline.stepper``), or give what makes the writer of committed keys; None: none are written."""
        return None

    def runner(self, rig: Rig, spec: S, unsupported: Sequence[str]) -> Callable[[float | None, Path | None], None] | None:
        """What runs the rig in place of the daemon, for a time (s) and with a file of ``--ready-file``; None: the daemon.

        It refuses ``unsupported``, options that were given and that only the daemon has.
        """
        return None

    def answer(self, readings: Sequence[Any]) -> Mapping[str, object]:
        """Entries of its readings in the answer to ``state``."""
        return {}

    def state(self, readings: Sequence[Any]) -> str:
        """What the live line shows of its readings; empty for nothing."""
        return ""

    def write_messages(self, rig: Rig, folder: Path, *, duration_ns: int, progress: Callable[[int], None], script: Any) -> Sequence[Any]:
        """Write messages that are no packets to a folder, up to a rig time; returns the path, topic and number of messages of each file.

        Args:
            rig: The rig.
            folder: Folder of the files, created if it does not exist.
            duration_ns: End of the recording in rig time.
            progress: Callback for the rig time (ns) written so far.
            script: Timed changes (``config.script.Script``), or None.
        """
        raise NotImplementedError

    def picture(self, rig: Rig, sensor: str, at_s: float) -> tuple[Any, str] | None:
        """Scan of one of its sensors at a time (a ``PictureScan``), and the sensor's name, the first one for an empty one; None: it has none."""
        return None


def parts_of(spec: RigSpec) -> Iterator[tuple[PartKind[Any], tuple[Any, ...]]]:
    """Kinds of parts of a rig, and the tables of each."""
    for table, specs in spec.parts.items():
        yield part_kind(table), specs


def sees_scene(spec: RigSpec) -> bool:
    """Whether a part of a rig looks at its scene."""
    return any(kind.sees(each) for kind, specs in parts_of(spec) for each in specs)


def has_overlay(spec: RigSpec) -> bool:
    """Whether a part of a rig puts its scene into recorded points."""
    return any(kind.inserts and kind.sees(each) for kind, specs in parts_of(spec) for each in specs)


def carrier(spec: RigSpec) -> PartKind[Any] | None:
    """Kind of the part of a rig that carries its sensors; None without one."""
    return next((kind for kind, _ in parts_of(spec) if kind.carries), None)
