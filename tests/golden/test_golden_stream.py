"""The bytes of a short stream, pinned field by field: a change of any of them must be meant.

``HILSIM_WRITE_GOLDEN=1`` writes the digests anew; the diff is then reviewed field by field. Ranges are without noise on hand-placed walls, so that they are the same on every CPU.
"""

import dataclasses
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.batch import Flow
from hilsim.emulator.lidar import LidarEmulator
from hilsim.families.velodyne.protocol.data import decode_data_packets
from hilsim.families.velodyne.protocol.position import decode_position_packets
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.time_input import GpsSetting
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import fixed_track
from hilsim.world.platforms.platform import build_platform
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject, build_world
from tests.lidars import lidar_setting

DIGESTS = Path(__file__).with_name("vlp16_stream.json")


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:32]


def stream_digests():
    spec = parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / "vlp16.toml"), "vlp16")
    material = Material(name="wall", reflectivity=60)
    walls = [((10.5, 0, 2), (1, 14, 6)), ((-10.5, 0, 2), (1, 14, 6)), ((0, 6.5, 2), (22, 1, 6)), ((0, -6.5, 2), (22, 1, 6))]
    flow = Flow(name="lidar/data", source="192.168.1.201", source_port=2368, destination="192.168.1.77", destination_port=2368)
    lidar = LidarEmulator(
        setting=lidar_setting(
            dataclasses.replace(spec, range_noise_m=0.0),
            rotation_rate_rpm=600,
            phase_deg=350.0,
            gps=GpsSetting(latitude_deg=36.8, longitude_deg=-2.4),
        ),
        world=build_world([SceneObject(mesh=box(size, material), placement=Pose(position_m=place)) for place, size in walls]),
        platform=build_platform(fixed_track(Pose(position_m=(0.113, 0.047, 0.0)))),
        seed=2026,
        utc_epoch_ns=1_767_229_199_900_000_000,  # 0.1 s before the top of an hour
        data_flow=flow,
        position_flow=flow,
    )
    data = lidar.data_packets(0, 151)
    packets = decode_data_packets(data.payload)
    position = lidar.position_span(0, 200_000_000)
    positions = decode_position_packets(position.payload)
    return {
        "data.deadline_ns": digest(data.deadline_ns),
        "data.azimuth": digest(packets["blocks"]["azimuth"]),
        "data.distance": digest(packets["blocks"]["channels"]["distance"]),
        "data.reflectivity": digest(packets["blocks"]["channels"]["reflectivity"]),
        "data.timestamp": digest(packets["timestamp"]),
        "data.factory": digest(data.payload[:, 1204:]),
        "position.deadline_ns": digest(position.deadline_ns),
        "position.timestamp": digest(positions["timestamp"]),
        "position.nmea": digest(positions["nmea"]),
        "position.payload": digest(position.payload),
    }


def test_the_stream_has_its_golden_bytes_field_by_field():
    found = stream_digests()
    if os.environ.get("HILSIM_WRITE_GOLDEN"):
        DIGESTS.write_text(json.dumps(found, indent=2) + "\n")
        pytest.skip("golden digests written; review the diff")
    assert found == json.loads(DIGESTS.read_text())
