"""The ground under a sensor: known planes, recorded scenes, and real captures against another method."""

import math

import numpy as np
import pytest

from hilsim.read.analysis.ground import Ground, Reason, fit_ground
from hilsim.world.geometry.frames import BODY_FROM_SENSOR
from hilsim.world.geometry.poses import Pose, mounting
from tests.grounds import WALLS, capture_points, record_ground

HEIGHT_M, ANGLE_DEG = 0.01, 0.1
TILTS = [
    ("vlp16", 1.73, 0.0, 0.0),
    ("vlp16", 1.73, 0.3, -0.7),
    ("vlp16", 0.6, -4.0, 2.5),
    ("vlp16", 2.4, 12.0, -9.0),
    ("vlp16", 1.2, -3.0, 25.0),
    ("hr80w-like", 1.6, 0.0, 0.0),
    ("hr80w-like", 2.0, -2.0, 4.0),
    ("hr80w-like", 3.5, 6.0, 14.0),
    ("hr80w-like", 5.0, -10.0, 25.0),
]


def plane_points(height_m, roll_deg, pitch_deg, *, count=5000, noise_m=0.0, reach_m=8.0, seed=1):
    """Points of level ground in the frame of a sensor above it."""
    random = np.random.default_rng(seed)
    world = np.column_stack([random.uniform(-reach_m, reach_m, (count, 2)), random.normal(0.0, noise_m, count) if noise_m else np.zeros(count)])
    sensor_from_world = (mounting((0.0, 0.0, height_m), (roll_deg, pitch_deg, 0.0)) @ Pose(orientation=BODY_FROM_SENSOR)).inverse()
    return np.array([sensor_from_world.transform(tuple(point)) for point in world.tolist()])


def check(ground, height_m, roll_deg, pitch_deg):
    assert isinstance(ground, Ground), str(ground)
    assert ground.height_m == pytest.approx(height_m, abs=HEIGHT_M)
    assert ground.roll_deg == pytest.approx(roll_deg, abs=ANGLE_DEG)
    assert ground.pitch_deg == pytest.approx(pitch_deg, abs=ANGLE_DEG)


@pytest.mark.parametrize(("roll_deg", "pitch_deg"), [(0.0, 0.0), (5.0, 0.0), (0.0, 5.0), (0.0, -5.0), (-20.0, 10.0), (10.0, -27.0)])
def test_a_sensor_mounted_with_the_height_and_the_angles_sees_the_plane_at_z_0(roll_deg, pitch_deg):
    points = plane_points(1.7, roll_deg, pitch_deg)
    ground = fit_ground(points)
    assert isinstance(ground, Ground)
    assert (ground.height_m, ground.roll_deg, ground.pitch_deg) == pytest.approx((1.7, roll_deg, pitch_deg), abs=1e-6)
    mounted = mounting((0.0, 0.0, ground.height_m), (ground.roll_deg, ground.pitch_deg, 0.0)) @ Pose(orientation=BODY_FROM_SENSOR)
    assert max(abs(mounted.transform(tuple(point))[2]) for point in points.tolist()) < 1e-6
    assert max(abs(ground.pose.transform(tuple(point))[2]) for point in points.tolist()) < 1e-6
    assert ground.inlier_ratio == 1.0
    up = mounted.inverse().transform((0.0, 0.0, 1.0 + ground.height_m)) if roll_deg == pitch_deg == 0.0 else None
    assert up is None or up == pytest.approx(ground.normal, abs=1e-9)


def test_the_pose_looks_along_world_y():
    ground = fit_ground(plane_points(1.5, 0.0, 0.0))
    assert ground.pose.transform((0.0, 10.0, 0.0)) == pytest.approx((0.0, 10.0, 1.5), abs=1e-6)
    assert ground.pose.transform((10.0, 0.0, 0.0)) == pytest.approx((10.0, 0.0, 1.5), abs=1e-6)


def test_positive_pitch_is_nose_down_and_positive_roll_right_side_down():
    ahead = np.array([0.0, 5.0, -1.5])
    nose_down = fit_ground(plane_points(1.5, 0.0, 10.0))
    right_down = fit_ground(plane_points(1.5, 10.0, 0.0))
    assert np.dot(nose_down.normal, ahead) + nose_down.height_m < -0.5  # level ahead of the sensor is above what it looks at
    assert np.dot(right_down.normal, (5.0, 0.0, -1.5)) + right_down.height_m < -0.5


@pytest.mark.parametrize(("profile", "height_m", "roll_deg", "pitch_deg"), TILTS)
def test_height_and_tilt_are_found_in_recorded_scenes(tmp_path, profile, height_m, roll_deg, pitch_deg):
    record_ground(tmp_path / "yard.pcap", profile, height_m, roll_deg, pitch_deg)
    check(fit_ground(capture_points(tmp_path / "yard.pcap")), height_m, roll_deg, pitch_deg)


def test_the_ground_is_found_among_60_percent_of_other_points():
    random = np.random.default_rng(3)
    clutter = np.column_stack([random.uniform(-8.0, 8.0, (7500, 2)), random.uniform(-1.6, 4.0, 7500)])
    ground = fit_ground(np.concatenate([clutter, plane_points(1.7, 2.0, -3.0, noise_m=0.015)]))
    check(ground, 1.7, 2.0, -3.0)
    assert ground.inlier_ratio == pytest.approx(0.4, abs=0.03)
    assert ground.rms_m == pytest.approx(0.015, abs=0.006)


def test_the_floor_is_the_ground_and_not_a_larger_table():
    table = plane_points(0.6, 0.0, 0.0, count=6000, reach_m=1.5)
    check(fit_ground(np.concatenate([table, plane_points(1.4, 0.0, 0.0, count=5000, reach_m=6.0)])), 1.4, 0.0, 0.0)


def test_the_same_seed_gives_the_same_ground_and_another_one_nearly_the_same():
    points = plane_points(1.7, 2.0, -3.0, count=120_000, noise_m=0.02)
    assert fit_ground(points) == fit_ground(points)
    check(fit_ground(points, seed=7), 1.7, 2.0, -3.0)


@pytest.mark.parametrize("profile", ["vlp16", "hr80w-like"])
def test_walls_alone_are_no_ground(tmp_path, profile):
    record_ground(tmp_path / "walls.pcap", profile, 1.5, 0.0, 0.0, scene=WALLS)
    found = fit_ground(capture_points(tmp_path / "walls.pcap"))
    assert isinstance(found, Reason), str(found)


def test_each_reason_gives_what_was_found():
    assert fit_ground(np.zeros((0, 3))) == Reason(reason="at least 200 points must be below the sensor, got 0")
    assert fit_ground(plane_points(1.5, 0.0, 0.0, count=150)).reason == "at least 200 points must be below the sensor, got 150"
    assert fit_ground(plane_points(-2.0, 0.0, 0.0)).reason == "at least 200 points must be below the sensor, got 0"
    assert fit_ground(plane_points(2.0, 0.0, 40.0)).reason == "no plane below the sensor is within 30 degrees of level"
    few = np.concatenate(
        [plane_points(1.5, 0.0, 0.0, count=300), np.column_stack([np.full(30_000, 9.0), np.random.default_rng(1).uniform(-9, 9, (30_000, 2))])]
    )
    assert "must hold 3% of the points, got" in fit_ground(few).reason
    assert (
        "(walls, not a floor)"
        in fit_ground(np.column_stack([np.random.default_rng(1).uniform(-9, 9, (30_000, 2)), np.random.default_rng(2).uniform(-3, 3, 30_000)])).reason
    )
    with pytest.raises(ValueError, match=r"points_m must be n x 3, got shape \(5, 2\)"):
        fit_ground(np.zeros((5, 2)))


def test_points_that_are_not_finite_or_at_the_sensor_are_left_out():
    points = plane_points(1.5, 0.0, 0.0)
    points[::7] = np.nan
    points[1::7] = 0.0
    ground = fit_ground(points)
    check(ground, 1.5, 0.0, 0.0)
    assert ground.inlier_ratio == 1.0


def test_the_text_gives_height_tilt_share_and_residual():
    ground = Ground(normal=(0.0, 0.0, 1.0), height_m=1.734, roll_deg=-0.04, pitch_deg=0.0, inlier_ratio=0.412, rms_m=0.0141)
    assert str(ground) == "ground 1.73 m below the sensor, tilted by 0.0 deg (roll 0.0, pitch 0.0), from 41 % of points, rms 14 mm"
    assert str(Reason(reason="so")) == "ground not found: so"


REAL = ["hdl32e_strongest.pcap", "vlp32c_strongest_fov.pcap", "vls128_strongest.pcap"]


@pytest.mark.parametrize(("name", "height_m", "most_tilt_deg"), [(REAL[0], (2.0, 2.5), 2.0), (REAL[1], (0.25, 0.4), 1.5), (REAL[2], (1.8, 2.2), 1.5)])
def test_real_captures_have_a_plausible_ground_that_stays(capture, name, height_m, most_tilt_deg):
    points = capture_points(capture(name))
    whole, first, second = fit_ground(points), fit_ground(points[: len(points) // 2]), fit_ground(points[len(points) // 2 :])
    assert height_m[0] < whole.height_m < height_m[1]
    assert whole.tilt_deg < most_tilt_deg
    assert abs(first.height_m - second.height_m) < 0.03
    assert abs(first.roll_deg - second.roll_deg) < 0.3
    assert abs(first.pitch_deg - second.pitch_deg) < 0.3


@pytest.mark.parametrize("name", REAL)
def test_real_captures_agree_with_the_lowest_frequent_height_near_the_sensor(any_capture, name):
    points = capture_points(any_capture(name))
    ground = fit_ground(points)
    normal, height_m = _by_histogram(points)
    assert ground.height_m == pytest.approx(height_m, abs=0.03)
    assert math.degrees(math.acos(min(float(np.dot(normal, ground.normal)), 1.0))) < 0.3


def _by_histogram(points):
    """Normal and height of the plane by SVD of the points about the lowest height that is frequent, first near the sensor, then as far as ``fit_ground`` looks."""
    normal = np.array([0.0, 0.0, 1.0])
    height_m = 2.0
    for reach in (4.0, 6.0, 10.0, 10.0, 10.0):
        near = points[np.linalg.norm(points, axis=1) < reach * height_m]
        above_m = near @ normal
        counts, edges = np.histogram(above_m[above_m < -0.1], np.arange(-4.0, 0.0, 0.05))
        height_m = -(edges[np.flatnonzero(counts >= counts.max() / 2)[0]] + 0.025)
        inliers = near[np.abs(above_m + height_m) < min(0.12, height_m / 5.0)]
        centre = inliers.mean(axis=0)
        normal = np.linalg.svd(inliers[:: max(len(inliers) // 20_000, 1)] - centre, full_matrices=False)[2][2]
        normal *= np.sign(normal[2])
        height_m = -float(normal @ centre)
    return normal, height_m


@pytest.mark.parametrize("name", ["vlp16_dual.pcap", "vlp16_strongest_1200rpm.pcap", "vlp16_strongest_gps.pcap"])
def test_real_captures_of_rooms_whose_floor_is_not_seen_give_a_reason(capture, name):
    assert isinstance(fit_ground(capture_points(capture(name))), Reason)
