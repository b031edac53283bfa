"""What a rig's ``[gazebo]`` is for the rest of hilsim; a rig without it imports nothing of this folder."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from hilsim.config.part_kind import PartKind
from hilsim.config.rig import Rig, RigSpec
from hilsim.errors import CaptureError
from hilsim.parts.gazebo.reading import GazeboReading
from hilsim.parts.gazebo.specs import GazeboSpec
from hilsim.telemetry.metrics import Losses

if TYPE_CHECKING:
    from hilsim.config.script import Script
    from hilsim.daemon.parts import RigContext
    from hilsim.parts.gazebo.messages import RecordedTopic
    from hilsim.parts.gazebo.part import Gazebo
    from hilsim.read.analysis.picture.fan import FanScan

_KERNELS = 30


class GazeboKind(PartKind[GazeboSpec]):
    """Publication of the lidars of the scene's SDF file to Gazebo's subscribers."""

    table: ClassVar[str] = "gazebo"
    spec: ClassVar[type[GazeboSpec]] = GazeboSpec
    is_list: ClassVar[bool] = False
    viewer: ClassVar[str] = "[gazebo]"
    writes_messages: ClassVar[bool] = True
    faults: ClassVar[Mapping[str, str]] = {
        "scans_missed": "Scans of a lidar for Gazebo's subscribers were skipped, because earlier ones took too long",
        "gazebo_ended": "Publishing a lidar to Gazebo's subscribers has failed",
    }
    reading: ClassVar[type[GazeboReading]] = GazeboReading
    losses: ClassVar[tuple[Losses, ...]] = (
        Losses("scans_missed", "scans", {"skipped_scans": "skipped, because earlier ones took too long"}, while_made=True),
    )

    def part(self, context: "RigContext") -> "Gazebo":
        """The lidars of a running rig."""
        from hilsim.parts.gazebo.part import Gazebo  # noqa: PLC0415 - a check of a file needs no transport

        return Gazebo(context)

    def name(self, spec: GazeboSpec) -> str:
        """No name: lidars of a world always run."""
        return ""

    def rules(self, rig: RigSpec) -> Iterator[tuple[bool, str]]:
        """Check that there is a file with lidars."""
        yield bool(rig.scene.sdf), "gazebo must come with scene.sdf, whose lidars it publishes"

    def sees(self, spec: GazeboSpec) -> bool:
        """Lidars look at the scene."""
        return True

    def kernels(self, rig: Rig) -> Iterator[tuple[str, int]]:
        """The measuring kernel and those that it calls."""
        yield "gazebo", _KERNELS

    def state(self, readings: Sequence[GazeboReading]) -> str:
        """Numbers of scans published to subscribers."""
        scans, skipped = sum(lidar.scans for lidar in readings), sum(lidar.skipped_scans for lidar in readings)
        return f"{scans:,} scans to subscribers{f', {skipped:,} left out' if skipped else ''}" if scans else "no subscriber yet"

    def write_messages(
        self, rig: Rig, folder: Path, *, duration_ns: int, progress: Callable[[int], None], script: "Script | None"
    ) -> "tuple[RecordedTopic, ...]":
        """Write what every topic would get if it had a subscriber, a file for each topic."""
        from hilsim.parts.gazebo.messages import record_messages  # noqa: PLC0415 - loads kernels

        return record_messages(rig, folder, duration_ns=duration_ns, progress=progress, script=script)

    def picture(self, rig: Rig, sensor: str, at_s: float) -> "tuple[FanScan, str]":
        """Newest measurement at a time of a lidar, and its name.

        Raises:
            CaptureError: there is no lidar of the name.
        """
        from hilsim.assembly.build import build_scenery  # noqa: PLC0415 - loads kernels
        from hilsim.parts.gazebo.lidars import gazebo_lidars  # noqa: PLC0415
        from hilsim.read.analysis.picture.fan import FanScan  # noqa: PLC0415

        lidars = {lidar.spec.name: lidar for lidar in gazebo_lidars(rig, build_scenery(rig))}
        if sensor and sensor not in lidars:
            raise CaptureError(f'{rig.path}: sensor must be one of {", ".join(lidars)}, got "{sensor}"')
        name = sensor or next(iter(lidars))
        lidar = lidars[name]
        azimuth_rad, elevation_rad = lidar.angles_rad
        ranges_m = lidar.ranges_m(round(at_s * 1e9) // lidar.period_ns * lidar.period_ns)
        return FanScan(range_m=ranges_m.reshape(len(elevation_rad), -1), azimuth_rad=azimuth_rad, elevation_rad=elevation_rad), name


KIND = GazeboKind()
