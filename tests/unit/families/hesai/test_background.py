"""Maps of what a Hesai saw: of emulated rooms, standing and moving, of real recordings, and rigs that show them."""

import numpy as np
import pytest

from hilsim.errors import CaptureError
from hilsim.families.hesai.protocol.models import BY_NAME
from hilsim.read.background.generator import generate, prepare
from hilsim.read.background.job import Motion
from hilsim.read.background.part import GridSetting
from hilsim.read.background.pool import map_here
from hilsim.read.background.surface import SurfaceRule
from hilsim.world.geometry.poses import extrinsics
from hilsim.world.geometry.tracks import linear_track
from tests import commands
from tests.hesai_sensors import in_room
from tests.livox_sensors import PLACE_M, ROOM_M
from tests.unit.background.recordings import write_capture

MOVE_M = (0.0, 0.4, 0.0)


def recorded(path, lidar, turns=4):
    """A capture of some turns."""
    packet_ns = lidar.plan.sequence_ns * lidar.setting.sequences_per_packet
    packets = lidar.data_packets(0, round(turns * 100_000_000 / packet_ns))
    payloads = [payload[: lidar.plan.data_size].tobytes() for payload in packets.payload]
    return write_capture(path, payloads, step_ns=packet_ns)


def mapped(path, setting=None, **more):
    job, found = prepare(path, setting or GridSetting(), **more)
    return generate(job, found, [path], SurfaceRule(), map_here, lambda _: None)


def off_walls_m(formed, where_m=PLACE_M):
    """Distance of each cell's surface along the cell's middle from the wall that it is nearest to."""
    azimuth = (np.arange(formed.grid.columns) + 0.5) * 2.0 * np.pi / formed.grid.columns
    level, elevation = np.meshgrid(azimuth, np.radians(formed.grid.elevation_deg))
    ahead = np.stack([np.cos(elevation) * np.cos(level), -np.cos(elevation) * np.sin(level), np.sin(elevation)], axis=-1)
    place = ahead * (formed.distance_mm / 1000.0)[..., None] + np.array(where_m)
    return np.abs(np.abs(place) - np.array(ROOM_M) / 2).min(axis=-1)[formed.used]


@pytest.mark.parametrize(("model", "mode", "columns"), [("xt32", "dual", 2000), ("qt64", "last", 600), ("pandar40p", "strongest", 1800)])
def test_a_map_of_a_room_has_all_its_walls(model, mode, columns, tmp_path):
    lidar = in_room(model, return_mode=mode)
    found = mapped(recorded(tmp_path / "room.pcap", lidar))
    formed = found.map
    assert (formed.model, formed.grid.columns, formed.grid.rows) == (lidar.setting.spec.model, columns, BY_NAME[formed.model].channels)
    assert found.sensor.source.settable_rate_rpm(lidar.setting.spec) == 600
    assert found.partial.returns == 4 * columns * formed.grid.rows or model == "pandar40p"
    assert formed.used.mean() > 0.95
    assert np.median(off_walls_m(formed)) < 0.01


def test_a_sensor_that_moves_is_refused_but_with_its_poses(tmp_path):
    track = linear_track((0, 400_000_000), (PLACE_M, np.add(PLACE_M, MOVE_M)), np.tile((1.0, 0.0, 0.0, 0.0), (2, 1)))
    path = recorded(tmp_path / "moving.pcap", in_room(track=track))
    with pytest.raises(CaptureError, match="must not move"):
        mapped(path)
    formed = mapped(path, motion=Motion(track=track, is_utc=False, body_from_sensor=extrinsics((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)))).map
    assert np.median(off_walls_m(formed)) < 0.015


@pytest.mark.parametrize("name", ["hesai_xt32_dual_600rpm", pytest.param("hesai_pandar40p_dual_600rpm", marks=pytest.mark.extended)])
def test_a_rig_shows_what_a_real_unit_saw(capture, name, tmp_path):
    path = capture(f"hesai/{name}.pcap")
    made = commands.run("background", path, "-o", tmp_path / "place", "--workers", "1")
    assert made.returncode == 0, made.stderr
    checked = commands.run("background", path, "--check", tmp_path / "place.toml", "--workers", "1")
    assert checked.stdout.endswith("passed\n"), checked.stdout + checked.stderr
