"""The lidar of a rover, as a sensor of the rig would measure: the emulator's packets, decoded as a driver decodes them.

A scan consists of the firings of one cycle, all from the rover's pose at the cycle's end, each at its own time: a scan corrected for motion.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hilsim.config.rig import Rig
from hilsim.emulator.batch import Flow
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.setting import LidarSetting
from hilsim.parts.rovers.driving import DriveState, orientation_of
from hilsim.parts.rovers.sender import RoverSource, scan_sources
from hilsim.read.analysis.decode import decode_emulated
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import matrix_from_quaternion
from hilsim.world.geometry.tracks import fixed_track
from hilsim.world.platforms.platform import build_platform
from hilsim.world.scene.world import World

if TYPE_CHECKING:
    from hilsim.parts.rovers.specs import RoverSpec

_NOWHERE = Flow(name="", source="0.0.0.0", source_port=0, destination="0.0.0.0", destination_port=0)  # noqa: S104 - nothing is sent there


class EmulatedLidar:
    """A lidar on a rover.

    Args:
        setting: Settings of the lidar.
        world: World that it sees.
        seed: Random seed of the rig.
        period_ns: Period of the rover's cycles.
        height_m: Height of the lidar's mounting above the ground.
    """

    def __init__(self, setting: LidarSetting, world: World, *, seed: int, period_ns: int, height_m: float) -> None:
        self._track = fixed_track(Pose())
        self._height_m = height_m
        self._setting = setting
        self._emulator = LidarEmulator(
            setting=setting,
            world=world,
            platform=build_platform(self._track),
            seed=seed,
            utc_epoch_ns=0,
            data_flow=_NOWHERE,
            position_flow=_NOWHERE,
            may_change=False,
        )
        firings = math.ceil(period_ns / setting.family.sequence_ns)
        self._points = firings * setting.spec.laser_count * (2 if setting.setup.return_mode == "dual" else 1)

    @property
    def points(self) -> int:
        """Number of points of a scan where every ray hits."""
        return self._points

    def see(self, world: World) -> None:
        """Measure another world from now on."""
        if world is not self._emulator.world:
            self._emulator = replace(self._emulator, world=world).with_plan_of(self._emulator)

    def measured(self, state: npt.NDArray[np.float64], start_ns: int, stop_ns: int) -> npt.NDArray[np.float32]:
        """``float32[n, 3]``: points of the packets due in a stretch of rig time, from where the rover is, in the frame that is sent (y up).

        Args:
            state: ``float64[7]``, columns by ``DriveState``.
            start_ns: Start of the interval.
            stop_ns: End of the interval, excluded.
        """
        stand = Pose(position_m=tuple(state[[DriveState.X, DriveState.Y, DriveState.Z]].tolist()), orientation=orientation_of(state))
        body = stand @ Pose(position_m=(0.0, 0.0, self._height_m))
        self._track.position_m[0], self._track.orientation[0] = body.position_m, body.orientation
        first = self._emulator.first_data_packet(start_ns)
        packets = self._emulator.data_packets(first, self._emulator.first_data_packet(stop_ns) - first)
        found = decode_emulated(packets.payload, self._setting)
        at = body @ self._setting.setup.body_from_sensor
        points = np.stack([found["x"], found["y"], found["z"]], axis=1).astype(np.float64)
        east, north, up = (points @ matrix_from_quaternion(at.orientation).T + np.array(at.position_m)).T
        return np.stack([east, up, -north], axis=1).astype(np.float32)


def rover_sources(rig: Rig, world: World | None, *, can_change: bool = False) -> tuple[RoverSource, ...]:
    """Make the sources of scans of a rig's rovers, and check each file.

    Args:
        rig: A rig with rovers.
        world: World of the driving rovers.
        can_change: Whether other worlds may follow while they drive.

    Raises:
        AssetError: naming every file that has none.
    """
    rovers: tuple[RoverSpec, ...] = rig.spec.part("rover")
    lidars = [
        EmulatedLidar(setting, world, seed=rig.spec.seed, period_ns=rover.period_ns, height_m=rover.drive.lidar_height_m)
        if world is not None and setting is not None and rover.drive is not None
        else None
        for rover, setting in zip(rovers, rig.settings["rover"], strict=True)
    ]
    return scan_sources(rovers, rig.directory, world, lidars, can_change=can_change)
