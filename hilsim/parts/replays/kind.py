"""What a rig's ``[[replay]]`` is for the rest of hilsim; a rig without one imports nothing of this folder."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hilsim.config.part_kind import PartKind
from hilsim.config.rig import Rig, RigSpec
from hilsim.config.script import ChangeSpec, ReplayChange
from hilsim.errors import ConfigError
from hilsim.parts.replays.reading import ReplayReading
from hilsim.parts.replays.screen_text import progress
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.transmit.specs import FlowSpec, SocketSpec

if TYPE_CHECKING:
    from hilsim.daemon.parts import RigContext
    from hilsim.daemon.running_rig import RunningRig
    from hilsim.offline.spans import OfflineRig
    from hilsim.parts.replays.offline import OfflineReplay
    from hilsim.parts.replays.part import Replays

_KERNELS = 14
_MAX_BARS = 2


class ReplayKind(PartKind[ReplaySpec]):
    """Captures that are replayed."""

    table: ClassVar[str] = "replay"
    spec: ClassVar[type[ReplaySpec]] = ReplaySpec
    destination: ClassVar[tuple[str, ...]] = ("destination",)
    destination_port: ClassVar[tuple[str, ...]] = ("destination_port",)
    can_reload: ClassVar[bool] = True
    viewer: ClassVar[str] = "[[replay]] with overlay = true"
    inserts: ClassVar[bool] = True
    is_sensor: ClassVar[bool] = True
    faults: ClassVar[Mapping[str, str]] = {"replay_failed": "The replay of a capture has failed"}
    reading: ClassVar[type[ReplayReading]] = ReplayReading
    late: ClassVar[str] = "late_packets"

    def part(self, context: "RigContext") -> "Replays":
        """The replays of a running rig."""
        from hilsim.parts.replays.part import Replays  # noqa: PLC0415 - a check of a file needs no player

        return Replays(context)

    def setting(self, spec: ReplaySpec, number: int, rig: RigSpec, path: Path, faults: list[str]) -> int:
        """Its number, by which random draws are keyed where ``--only`` leaves out others."""
        return number

    def sees(self, spec: ReplaySpec) -> bool:
        """Whether the scene is put into its points."""
        return spec.overlay

    def check_change(self, specs: Sequence[ReplaySpec], world: object, change: ChangeSpec) -> None:
        """Refuse a change of a replay that the rig does not have.

        Raises:
            ConfigError: it has none of the name.
        """
        names = [spec.name for spec in specs]
        if isinstance(change, ReplayChange) and not any(map(change.concerns, names)):
            raise ConfigError(f'replay must be a replay of the rig ({", ".join(names) or "it has none"}), got "{change.replay}"')

    def kernels(self, rig: Rig) -> Iterator[tuple[str, int]]:
        """Kernels of a player."""
        yield "replay", _KERNELS

    def ready(self, spec: ReplaySpec, flows: Iterable[FlowSpec]) -> Iterator[Mapping[str, object]]:
        """Destination of each of its flows."""
        for flow in flows:
            if flow.name.partition("/")[0] == spec.name and isinstance(flow.socket, SocketSpec):
                to, port = flow.socket.destination, flow.socket.destination_port
                yield {"name": spec.name, "flow": flow.name.rpartition("/")[2], "destination": to, "port": port}

    def sources(self, offline: "OfflineRig", threads: int) -> "Iterable[tuple[str, OfflineReplay]]":
        """Replays without a clock.

        Raises:
            CaptureError: a capture cannot be replayed.
        """
        from hilsim.parts.replays.offline_rig import offline_replays  # noqa: PLC0415 - loads kernels

        return offline_replays(offline, threads)

    def answer(self, readings: Sequence[ReplayReading]) -> dict[str, object]:
        """The readings themselves."""
        return {"replays": [asdict(reading) for reading in readings]}

    def state(self, readings: Sequence[ReplayReading]) -> str:
        """Progress of the first replays."""
        return "  ".join(map(progress, readings[:_MAX_BARS]))

    def of_options(self, captures: tuple[Path, ...], options: dict[str, Any]) -> RigSpec:
        """Rig that the options of ``hilsim replay`` describe.

        Raises:
            CaptureError: files are no captures; the message names each on its own line.
            ConfigError: the options are invalid.
        """
        from hilsim.parts.replays.of_options import rig_of_options  # noqa: PLC0415 - for the command alone

        return rig_of_options(captures, options)

    def summarised(self, running: "RunningRig") -> dict[str, Any]:
        """Summary of ``hilsim replay`` for JSON."""
        from hilsim.parts.replays.of_options import summarised  # noqa: PLC0415 - for the command alone

        return summarised(running)


KIND = ReplayKind()
