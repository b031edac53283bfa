"""Hesai lidars in the room of ``livox_sensors``, for tests."""

import dataclasses

import numpy as np

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.batch import Flow
from hilsim.emulator.lidar import LidarEmulator
from hilsim.families.hesai.protocol.points import BY_SIZE
from hilsim.families.hesai.specs import HesaiSpec
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import fixed_track
from hilsim.world.platforms.platform import build_platform
from hilsim.world.scene.world import build_world
from tests.lidars import lidar_setting
from tests.livox_sensors import PLACE_M, walls


def hesai(model="xt32", **changes):
    """The profile, with some keys changed."""
    return dataclasses.replace(parse_table(HesaiSpec, read_toml(profiles_directory() / "sensors" / f"{model}.toml"), model), **changes)


def in_room(model="xt32", *, spec=None, objects=(), track=None, is_exact=True, seed=7, **setup):
    """An emulator of a sensor in the room, with further objects."""
    flow = Flow(name="lidar/points", source="192.168.1.201", source_port=10_000, destination="192.168.1.5", destination_port=2368)
    return LidarEmulator(
        setting=lidar_setting(spec or hesai(model, range_noise_m=0.0), is_exact=is_exact, **setup),
        world=build_world([*walls(), *objects]),
        platform=build_platform(track or fixed_track(Pose(position_m=PLACE_M))),
        seed=seed,
        utc_epoch_ns=1_767_229_199_900_000_000,
        data_flow=flow,
        position_flow=dataclasses.replace(flow, name="lidar/gps", destination_port=10_110),
    )


def packets_of(lidar, first=0, count=250):
    """Records of packets."""
    payload = lidar.data_packets(first, count).payload[:, : lidar.plan.data_size]
    return np.ascontiguousarray(payload).view(BY_SIZE[lidar.plan.data_size][1])[:, 0]
