"""The bytes of a short stream of a Cepton-style sensor, pinned field by field: a change of any of them must be meant.

``HILSIM_WRITE_GOLDEN=1`` writes the digests anew; the diff is then reviewed field by field. Ranges are without noise on hand-placed walls, so that they are the same on every CPU.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from hilsim.emulator.batch import Flow
from hilsim.emulator.lidar import LidarEmulator
from hilsim.families.cepton.protocol.info import INFO_PACKET_DTYPE
from hilsim.families.cepton.protocol.stdv import POINT_DTYPE, PointFlag
from hilsim.families.cepton.setting import CeptonSetting
from hilsim.sensor.mirror import MirrorSpec
from hilsim.sensor.specs import ClockSetting
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import fixed_track
from hilsim.world.platforms.platform import build_platform
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject, build_world
from tests.cepton_models import mirror_spec, row_of_eight, with_detector
from tests.golden.test_golden_stream import digest
from tests.lidars import lidar_setting

DIGESTS = Path(__file__).with_name("cepton_stream.json")
PACKETS = 100
SWEPT = MirrorSpec(x_hz=9.72, x_amplitude=0.2, x_third_ratio=-0.1, x_third_phase_deg=20.0, z_hz=214.04, z_amplitude=0.155, z_phase_deg=45.0)


def sensor():
    """Walls near and far, one of them farther to the right than points can say, before lasers that look between them now and then."""
    walls = [
        ((20.5, 5.0, 0.0), (1, 6, 4), 60),
        ((60.5, 0.0, 0.0), (1, 60, 8), 20),
        ((200.5, -180.0, 0.0), (1, 60, 8), 80),
        ((9.5, -2.0, 0.0), (1, 1, 1), 250),
    ]
    objects = [
        SceneObject(mesh=box(size, Material(name=f"wall {reflectivity}", reflectivity=reflectivity)), placement=Pose(position_m=place))
        for place, size, reflectivity in walls
    ]
    spec = with_detector(
        mirror_spec(row_of_eight(x=(-0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.85)), SWEPT),
        threshold_reflectivity=0.1,
        saturation_ratio=90.0,
        doubt_ratio=8.0,
    )
    flow = Flow(name="lidar/points", source="192.168.1.201", source_port=8808, destination="192.168.1.77", destination_port=8808)
    return LidarEmulator(
        setting=lidar_setting(
            spec,
            phase_deg=80.0,
            return_mode="dual",
            clock=ClockSetting(offset_s=12.345678, oscillator_ppm=37.0),
            cepton=CeptonSetting(info_packets=True, serial=4165, firmware=(3, 51, 0, 0)),
        ),
        world=build_world(objects),
        platform=build_platform(fixed_track(Pose(position_m=(0.113, 0.047, 0.0)))),
        seed=2026,
        utc_epoch_ns=1_767_229_199_900_000_000,
        data_flow=flow,
        position_flow=flow,
    )


def stream_digests():
    lidar = sensor()
    data = lidar.data_packets(0, PACKETS)
    points = np.frombuffer(np.ascontiguousarray(data.payload[:, 24:]).tobytes(), POINT_DTYPE)
    info = lidar.position_span(0, 2_000_000_000)
    said = np.frombuffer(info.payload.tobytes(), INFO_PACKET_DTYPE)
    return {
        "points.deadline_ns": digest(data.deadline_ns),
        "points.header": digest(data.payload[:, :24]),
        **{f"points.{field}": digest(points[field]) for field in POINT_DTYPE.names},
        "info.deadline_ns": digest(info.deadline_ns),
        "info.power_up_us": digest(said["power_up_us"]),
        "info.sync_offset_us": digest(said["sync_offset_us"]),
        "info.payload": digest(info.payload),
    }


def test_the_stream_has_its_golden_bytes_field_by_field():
    found = stream_digests()
    if os.environ.get("HILSIM_WRITE_GOLDEN"):
        DIGESTS.write_text(json.dumps(found, indent=2) + "\n")
        pytest.skip("golden digests written; review the diff")
    assert found == json.loads(DIGESTS.read_text())


def test_the_pinned_stretch_holds_every_kind_of_point():
    flags = np.frombuffer(np.ascontiguousarray(sensor().data_packets(0, PACKETS).payload[:, 24:]).tobytes(), POINT_DTYPE)["flags"]
    for flag in (PointFlag.SATURATED, PointFlag.FRAME_PARITY, PointFlag.SECOND_RETURN, PointFlag.NO_RETURN, PointFlag.NOISE):
        assert (flags & flag).any(), flag
        assert not (flags & flag).all(), flag
