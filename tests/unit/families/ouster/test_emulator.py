"""An emulated Ouster in the Python interface: points with labels, scans of whole turns, changes of its mode."""

import numpy as np
import pytest

import hilsim
from hilsim.testing.sensor_rig import ROOM

QUIET = {"profile": "os1-32", "unit": "ideal", "sub_rays": 1, "override": {"range_noise_m": 0.0, "detector": {}}}


def rig(**sensor):
    return {"name": "bench", "scene": ROOM, "sensor": [{"name": "lidar", **QUIET, **sensor}]}


@pytest.mark.parametrize("profile", ["RNG19_RFL8_SIG16_NIR16", "FUSA_RNG15_RFL8_NIR8_DUAL"])
def test_points_are_on_the_surfaces_that_their_labels_name(profile):
    emulator = hilsim.Emulator(rig(ouster={"udp_profile_lidar": profile}))
    points = emulator.points(0.0, 0.1)
    names = np.array(emulator.object_names())
    assert points.size > 20_000
    assert (points["instance"] >= 0).all()
    assert set(points["ring"].tolist()) <= set(range(32))
    ahead = points[names[points["instance"]] == names[0]]  # the wall 10 m ahead
    assert ahead.size > 500
    np.testing.assert_allclose(ahead["y"], 10.0, atol=0.0045 if "RNG15" in profile else 0.001)
    floor = points[points["instance"] == 4]
    assert floor.size > 5000
    np.testing.assert_allclose(floor["z"], -1.0, atol=0.0045 if "RNG15" in profile else 0.001)


def test_a_scan_is_a_turn_and_the_next_begins_with_column_0():
    scans = list(hilsim.Emulator(rig()).scans(stop_s=0.3))
    assert [scan.start_ns for scan in scans] == [0, 100_000_000, 200_000_000][: len(scans)]
    assert len(scans) >= 2
    first, second = scans[:2]
    assert abs(first.points.size - second.points.size) <= 32
    assert first.points["y"][0] < 0.0  # column 0 looks back
    windowed = list(hilsim.Emulator(rig(ouster={"azimuth_window_mdeg": [90_000, 180_000]})).scans(stop_s=0.3))
    assert windowed[0].points.size < first.points.size / 3
    assert windowed[1].start_ns - windowed[0].start_ns == 100_000_000
