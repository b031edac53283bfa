"""A room with a moving ball, and a lidar in it."""

import numpy as np
import pytest

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.batch import Flow
from hilsim.emulator.lidar import LidarEmulator
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.time_input import GpsSetting
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import linear_track
from hilsim.world.platforms.disturbance import DisturbanceSpec, build_disturbance
from hilsim.world.platforms.platform import build_platform
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box, sphere
from hilsim.world.scene.world import SceneObject, build_world
from tests.lidars import lidar_setting

LEVEL = (1.0, 0.0, 0.0, 0.0)
PLASTER = Material(name="plaster", reflectivity=85)
SIGN = Material(name="sign", reflectivity=250)
UTC_EPOCH_NS = 1_767_225_600_000_000_000


@pytest.fixture(scope="session")
def vlp16():
    return parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / "vlp16.toml"), "vlp16")


@pytest.fixture(scope="session")
def world():
    walls = [
        ((10.5, 0, 2), (1, 14, 6)),
        ((-10.5, 0, 2), (1, 14, 6)),
        ((0, 6.5, 2), (22, 1, 6)),
        ((0, -6.5, 2), (22, 1, 6)),
        ((0, 0, -1.5), (22, 14, 1)),
    ]
    still = [SceneObject(mesh=box(size, PLASTER), placement=Pose(position_m=place)) for place, size in walls]
    keys = np.array([[-6.0, -3.0, 0.0], [6.0, -3.0, 0.0], [-6.0, -3.0, 0.0]])
    track = linear_track(np.array([0, 10**9, 2 * 10**9 - 1]), keys, np.tile(LEVEL, (3, 1)), period_ns=2 * 10**9)
    return build_world([*still, SceneObject(mesh=sphere(0.5, SIGN), placement=track)])


@pytest.fixture(scope="session")
def make_lidar(vlp16, world):
    def make(**setting):
        keys = np.array([[0.0, 0.0, 0.0], [3.0, 1.0, 0.2]])
        track = linear_track(np.array([0, 2 * 10**9]), keys, np.tile(LEVEL, (2, 1)))
        platform = build_platform(track, build_disturbance(DisturbanceSpec(amplitude_m=0.02, amplitude_deg=1.0), 3, 0))
        flow = Flow(name="lidar/data", source="127.0.1.201", source_port=2368, destination="127.0.0.1", destination_port=2368)
        gps = GpsSetting(latitude_deg=36.8, longitude_deg=-2.4)
        return LidarEmulator(
            setting=lidar_setting(**{"spec": vlp16, "gps": gps} | setting),
            world=world,
            platform=platform,
            seed=9,
            utc_epoch_ns=UTC_EPOCH_NS,
            data_flow=flow,
            position_flow=flow,
        )

    return make
