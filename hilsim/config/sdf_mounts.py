"""Mounting of sensors at the poses of lidars in the scene's SDF file."""

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hilsim.config.tables.platform import PlatformSpec
from hilsim.config.tables.sensor import SensorSpec
from hilsim.errors import AssetError
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.rotations import roll_pitch_yaw_rad
from hilsim.world.scene.specs import SceneSpec

if TYPE_CHECKING:
    from hilsim.world.sdf.specs import SdfLidar

_NOWHERE = (0.0, 0.0, 0.0)


def mounted(sensors: tuple[SensorSpec, ...], scene: SceneSpec, platform: PlatformSpec, directory: Path) -> tuple[tuple[SensorSpec, ...], list[str]]:
    """Sensors with the mountings of those lidars, and faults.

    Args:
        sensors: Sensors of the rig.
        scene: Scene of the rig.
        platform: Platform of the rig.
        directory: Directory of the rig.
    """
    if not any(sensor.sdf_sensor for sensor in sensors):
        return sensors, []
    if not scene.sdf:
        return sensors, ["sensor.sdf_sensor must come with scene.sdf"]
    if platform.kind != "fixed" or platform.disturbance is not None:
        return sensors, [f'platform must not move (kind "fixed", no disturbance) where a sensor has sdf_sensor, got kind "{platform.kind}"']
    from hilsim.world.sdf.reading import read_sdf  # noqa: PLC0415 - most rigs do not need it

    try:
        lidars = {lidar.name: lidar for lidar in read_sdf(directory / scene.sdf, [directory / place for place in scene.sdf_path]).lidars}
    except AssetError as error:
        return sensors, str(error).split("\n")
    body = mounting(platform.position_m, platform.rotation_deg).inverse() @ Pose(position_m=scene.origin_m)
    faults: list[str] = []
    moving = {item.model for item in scene.sdf_motion}
    return tuple(_mounted(sensor, number, lidars, moving, body, faults) for number, sensor in enumerate(sensors)), faults


def _mounted(sensor: SensorSpec, number: int, lidars: "dict[str, SdfLidar]", moving: set[str], body: Pose, faults: list[str]) -> SensorSpec:
    name = sensor.sdf_sensor
    if not name:
        return sensor
    if name not in lidars:
        faults.append(f'sensor[{number}].sdf_sensor must be a lidar of scene.sdf ({", ".join(lidars) or "it has none"}), got "{name}"')
        return sensor
    lidar = lidars[name]
    carrier = lidar.actor or next((model for model in moving if name.startswith(f"{model}::")), "")
    if carrier:
        faults.append(f'sensor[{number}].sdf_sensor must be a lidar that does not move, got "{name}", which moves with "{carrier}"')
        return sensor
    if (sensor.mount_position_m, sensor.mount_rotation_deg) != (_NOWHERE, _NOWHERE):
        faults.append(f"sensor[{number}] must have sdf_sensor or a mounting, got both")
        return sensor
    pose = body @ lidar.pose
    roll, pitch, yaw = roll_pitch_yaw_rad(pose.orientation)
    return replace(sensor, mount_position_m=pose.position_m, mount_rotation_deg=(math.degrees(roll), math.degrees(pitch), math.degrees(yaw)))
