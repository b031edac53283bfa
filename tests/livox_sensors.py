"""A Mid-360 in an empty room, for tests."""

import dataclasses

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.batch import Flow
from hilsim.emulator.lidar import LidarEmulator
from hilsim.families.livox.setting import LivoxSetting
from hilsim.families.livox.specs import LivoxSpec
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import fixed_track
from hilsim.world.platforms.platform import build_platform
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject, build_world
from tests.lidars import lidar_setting

ROOM_M = (12.0, 8.0, 5.0)
"""Inner size of the room; the sensor is at ``PLACE_M`` from its middle."""
PLACE_M = (0.6, -0.4, -0.8)
WALL_M = 0.5


def mid360(model="mid360", **changes):
    """The profile, with some keys changed."""
    return dataclasses.replace(parse_table(LivoxSpec, read_toml(profiles_directory() / "sensors" / f"{model}.toml"), model), **changes)


def walls(reflectivity=60):
    """Six boxes around the room."""
    objects = []
    for axis in range(3):
        for side in (-1, 1):
            size, place = [each + 2 * WALL_M for each in ROOM_M], [0.0, 0.0, 0.0]
            size[axis], place[axis] = WALL_M, side * (ROOM_M[axis] + WALL_M) / 2
            mesh = box(tuple(size), Material(name="wall", reflectivity=reflectivity))
            objects.append(SceneObject(mesh=mesh, placement=Pose(position_m=tuple(place))))
    return objects


def in_room(*, spec=None, objects=(), platform=None, livox=None, is_exact=True, seed=7, **setup):
    """An emulator of a sensor in the room, with further objects."""
    flow = Flow(name="lidar/points", source="192.168.1.103", source_port=56300, destination="192.168.1.5", destination_port=56301)
    return LidarEmulator(
        setting=lidar_setting(spec or mid360(range_noise_m=0.0), is_exact=is_exact, livox=livox or LivoxSetting(), **setup),
        world=build_world([*walls(), *objects]),
        platform=platform or build_platform(fixed_track(Pose(position_m=PLACE_M))),
        seed=seed,
        utc_epoch_ns=1_767_229_199_900_000_000,
        data_flow=flow,
        position_flow=dataclasses.replace(flow, name="lidar/imu", source_port=56400, destination_port=56401),
    )
