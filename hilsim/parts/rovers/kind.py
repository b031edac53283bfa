"""What a rig's ``[[rover]]`` is for the rest of hilsim; a rig without one imports nothing of this folder."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hilsim.config.lidar_settings import sensor_lidar
from hilsim.config.part_kind import BoundPort, PartKind
from hilsim.config.rig import Rig, RigSpec, takes_timed_changes
from hilsim.config.tables.sensor import SensorSpec
from hilsim.emulator.setting import LidarSetting
from hilsim.errors import ConfigError, require
from hilsim.parts.rovers.limits import ROVER_SCAN_POINTS
from hilsim.parts.rovers.protocol import COMMAND_PORT
from hilsim.parts.rovers.reading import RoverReading
from hilsim.parts.rovers.specs import MAX_ROVERS, RoverSpec
from hilsim.telemetry.metrics import Losses
from hilsim.transmit.specs import FlowSpec

if TYPE_CHECKING:
    from hilsim.daemon.parts import RigContext
    from hilsim.offline.spans import OfflineRig
    from hilsim.parts.rovers.offline import OfflineRover
    from hilsim.parts.rovers.part import Rovers

_LIDAR_STREAMS = 10_000
"""First random stream of rovers' lidars, above those of a rig's sensors."""
_KERNELS = 25
"""Approximate number of kernels of rovers without a lidar."""


class RoverKind(PartKind[RoverSpec]):
    """Rovers that send poses and scans, and take commands."""

    table: ClassVar[str] = "rover"
    spec: ClassVar[type[RoverSpec]] = RoverSpec
    destination: ClassVar[tuple[str, ...]] = ("network", "destination")  # the number determines the ports
    viewer: ClassVar[str] = "[[rover]] with drive"
    faults: ClassVar[Mapping[str, str]] = {
        "rovers_ended": "A thread of the rovers has ended",
        "cycles_missed": "Cycles of a rover did not begin in time, or had no scan",
        "scans_ended": "Reading of a rover's file of scans has failed",
    }
    reading: ClassVar[type[RoverReading]] = RoverReading
    losses: ClassVar[tuple[Losses, ...]] = (Losses("cycles_missed", "cycles", {"late_cycles": "begun too late", "empty_cycles": "without a scan"}),)

    def part(self, context: "RigContext") -> "Rovers":
        """The rovers of a running rig."""
        from hilsim.parts.rovers.part import Rovers  # noqa: PLC0415 - a check of a file needs no sender

        return Rovers(context)

    def rules(self, rig: RigSpec) -> Iterator[tuple[bool, str]]:
        """Check that numbers, which determine ports, differ, and that no rover measures poses that are not known yet."""
        rovers: Sequence[RoverSpec] = rig.part("rover")
        repeated = sorted(number for number, count in Counter(rover.number for rover in rovers).items() if count > 1)
        yield not repeated, f"number of rovers must differ, got {', '.join(map(str, repeated))} more than once"
        yield len(rovers) <= MAX_ROVERS, f"rover must have at most {MAX_ROVERS} entries, got {len(rovers)}"
        is_followed = any(each.time != "replay" for each in rig.part("external"))
        yield (
            not is_followed or not any(map(self.sees, rovers)),
            "rover.drive must not be given with external poses that are followed live: rovers measure 60 ms ahead",
        )

    def setting(self, spec: RoverSpec, number: int, rig: RigSpec, path: Path, faults: list[str]) -> LidarSetting | None:
        """Setting of a rover's lidar, None without one; its random stream is separate from the sensors'."""
        lidar = spec.drive.lidar if spec.drive is not None else None
        if lidar is None:
            return None
        place = f"rover[{number}].drive.lidar"
        sensor = SensorSpec(name=spec.name, **{each.name: getattr(lidar, each.name) for each in fields(lidar)})
        try:
            setting = sensor_lidar(sensor, rig.weather, _LIDAR_STREAMS + spec.number, path, place)
            firings = setting.spec.laser_count * spec.period_ns / setting.family.sequence_ns
            require(ROVER_SCAN_POINTS.rule(math.ceil(firings * (2 if lidar.return_mode == "dual" else 1)), "points of a cycle"))
        except ConfigError as error:
            faults.extend(str(error).split("\n"))
        except ValueError as error:
            faults.extend(f"{path}: {place}.{rule}" for rule in str(error).split("; "))
        else:
            return setting
        return None

    def noise(self, table: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
        """Keys of the noise of a file's values, and of the drift that a rover has."""
        yield from (("noise", key) for key in ("position_m", "rotation_deg", "point_m"))
        if "drift" in table:
            yield from (("drift", key) for key in ("position_m", "height_m", "heading_deg"))

    def sees(self, spec: RoverSpec) -> bool:
        """Whether a rover drives through the scene."""
        return spec.drive is not None

    def ports(self, spec: RoverSpec) -> Iterator[BoundPort]:
        """Port of a rover's commands."""
        yield BoundPort(spec.network.source, COMMAND_PORT + spec.number, "number")

    def kernels(self, rig: Rig) -> Iterator[tuple[str, int]]:
        """Kernels of rovers, of their lidars, and of those that a change may reach."""
        from hilsim.daemon.precompile import LIDAR_KERNELS, lidar_kernels  # noqa: PLC0415 - only a start needs them
        from hilsim.emulator.planning import has_rare  # noqa: PLC0415

        yield "rovers", _KERNELS
        count = 0 if rig.lidars else LIDAR_KERNELS
        yield from ((f"rover-{lidar_kernels(lidar, is_rare=has_rare(lidar))}", count) for lidar in rig.settings["rover"] if lidar is not None)
        if takes_timed_changes(rig) and any(map(self.sees, rig.spec.part("rover"))):
            yield "rovers-change", 0

    def ready(self, spec: RoverSpec, flows: Iterable[FlowSpec]) -> Iterator[dict[str, object]]:
        """Number and addresses of a rover."""
        yield {"number": spec.number, "source": spec.network.source, "destination": spec.network.destination}

    def sources(self, offline: "OfflineRig", threads: int) -> "Iterable[tuple[str, OfflineRover]]":
        """Rovers without a clock.

        Raises:
            AssetError: a file has no scan.
        """
        from hilsim.parts.rovers.lidars import rover_sources  # noqa: PLC0415 - loads kernels
        from hilsim.parts.rovers.offline import OfflineRover  # noqa: PLC0415 - loads kernels

        rig, rovers = offline.rig, offline.rig.spec.part("rover")
        for rover, scans in zip(rovers, rover_sources(rig, offline.world), strict=True):
            yield rover.name, OfflineRover(rover, scans, rig.spec.seed, offline.later_worlds(rover.name) if rover.drive else ())


KIND = RoverKind()
