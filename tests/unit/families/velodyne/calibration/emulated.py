"""Recordings of emulated units in an empty room, for tests of calibration."""

import dataclasses

import numpy as np

from hilsim.capture.datagram import CapturedDatagram
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.batch import Flow
from hilsim.emulator.lidar import LidarEmulator
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.unit.spec import UnitSpec
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import fixed_track
from hilsim.world.platforms.platform import build_platform
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject, build_world
from tests.lidars import lidar_setting

SPEC = parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / "vlp16.toml"), "vlp16")
WALLS = [((6.0, 0, 0), (1, 14, 2.4), 60), ((-5.5, 0, 0), (1, 14, 2.4), 35), ((0, 6.5, 0), (22, 1, 2.4), 45), ((0, -4.5, 0), (22, 1, 2.4), 75)]
FLOOR = ((0, 0, -1.6), (30, 30, 0.4), 30)
LINK = bytes.fromhex("ffffffffffff6076881000aa0800") + bytes(28)


def room(bytes_=None):
    """An empty room; the upper lasers see over the walls. ``bytes_`` are those of the four walls and the floor."""
    surfaces = [*WALLS, FLOOR]
    return build_world(
        [
            SceneObject(mesh=box(size, Material(name="wall", reflectivity=byte)), placement=Pose(position_m=place))
            for (place, size, _), byte in zip(surfaces, bytes_ or [byte for *_, byte in surfaces], strict=True)
        ]
    )


def emulated(unit=None, *, track=None, seed=11, bytes_=None, **setup):
    """Emulator of a drawn or learned unit in the room."""
    flow = Flow(name="lidar/data", source="192.168.1.201", source_port=2368, destination="192.168.1.77", destination_port=2368)
    setting = dataclasses.replace(lidar_setting(SPEC, unit="drawn", **setup), unit=unit or UnitSpec())
    platform = build_platform(track or fixed_track(Pose(position_m=(0.3, 0.2, 0.0))))
    return LidarEmulator(setting=setting, world=room(bytes_), platform=platform, seed=seed, utc_epoch_ns=0, data_flow=flow, position_flow=flow)


def datagrams(lidar, packets, source="192.168.1.201"):
    """Datagrams of the first data packets, and of the position packets meanwhile."""
    data = lidar.data_packets(0, packets)
    position = lidar.position_span(0, int(data.deadline_ns[-1]))
    rows = [(int(when), bytes(row[:1206])) for when, row in zip(data.deadline_ns, data.payload, strict=True)]
    rows += [(int(when), bytes(row[:512])) for when, row in zip(position.deadline_ns, position.payload, strict=True)]
    return [
        CapturedDatagram(when, source, 2368, "192.168.1.77", 2368, payload, LINK, is_ethernet=True, frame=number)
        for number, (when, payload) in enumerate(sorted(rows, key=lambda row: row[0]))
    ]


def errors(lasers, name):
    """A learned figure of each laser; NaN where it was not learned."""
    return np.array([laser.get(name, np.nan) for laser in lasers], np.float64)
