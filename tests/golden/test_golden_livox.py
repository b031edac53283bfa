"""The bytes of a short stream of a Mid-360, pinned field by field: a change of any of them must be meant.

``HILSIM_WRITE_GOLDEN=1`` writes the digests anew; the diff is then reviewed field by field. Ranges are without noise on the walls of a room, so that they are the
same on every CPU.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from hilsim.families.livox.protocol.points import HEADER_SIZE, POINT_DTYPES
from hilsim.families.livox.setting import LivoxSetting
from hilsim.sensor.specs import ClockSetting
from hilsim.world.geometry.poses import Pose
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject
from tests.golden.test_golden_stream import digest
from tests.livox_sensors import in_room, mid360

DIGESTS = Path(__file__).with_name("livox_stream.json")
PACKETS = 100


def sensor(data_type):
    """A room with a sign that reflects, beyond whose far corners a sensor does not see."""
    sign = SceneObject(mesh=box((0.1, 2.0, 2.0), Material(name="sign", reflectivity=200)), placement=Pose(position_m=(4.0, 0.0, 0.0)))
    clock = ClockSetting(offset_s=12.345678, oscillator_ppm=37.0)
    return in_room(
        spec=mid360(range_noise_m=0.0, range_max_m=7.0), objects=[sign], livox=LivoxSetting(pcl_data_type=data_type), clock=clock, phase_deg=80.0
    )


def stream_digests():
    found = {}
    for data_type, dtype in POINT_DTYPES.items():
        lidar = sensor(data_type)
        data = lidar.data_packets(0, PACKETS)
        payload = data.payload[:, : lidar.plan.data_size]
        points = np.frombuffer(np.ascontiguousarray(payload[:, HEADER_SIZE:]).tobytes(), dtype)
        found |= {
            f"type {data_type}.header": digest(payload[:, :HEADER_SIZE]),
            **{f"type {data_type}.{field}": digest(points[field]) for field in dtype.names},
        }
    imu = lidar.position_span(0, 500_000_000)
    return found | {"points.deadline_ns": digest(data.deadline_ns), "imu.deadline_ns": digest(imu.deadline_ns), "imu.payload": digest(imu.payload)}


def test_the_stream_has_its_golden_bytes_field_by_field():
    found = stream_digests()
    if os.environ.get("HILSIM_WRITE_GOLDEN"):
        DIGESTS.write_text(json.dumps(found, indent=2) + "\n")
        pytest.skip("golden digests written; review the diff")
    assert found == json.loads(DIGESTS.read_text())


def test_the_pinned_stretch_holds_every_kind_of_point():
    points = np.frombuffer(np.ascontiguousarray(sensor(1).data_packets(0, PACKETS).payload[:, HEADER_SIZE:]).tobytes(), POINT_DTYPES[1])
    assert ((points["x"] == 0) & (points["y"] == 0) & (points["z"] == 0)).any()
    assert (points["reflectivity"] > 150).any()
    assert ((points["reflectivity"] > 0) & (points["reflectivity"] <= 150)).any()
