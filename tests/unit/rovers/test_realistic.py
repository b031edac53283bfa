"""Rovers that err as real ones do: a slow error of the pose which the points share, and a lidar that measures as a sensor."""

import math
import struct
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

import hilsim
from hilsim.config.changes import Changes
from hilsim.config.rig import rig_of_table
from hilsim.daemon.precompile import kernel_needs
from hilsim.errors import ConfigError
from hilsim.parts.rovers.fleet import Error, RoverCount, allocate_fleet, drift_on, set_up
from hilsim.parts.rovers.specs import RoverDriftSpec, RoverDriveSpec, RoverLidarSpec, RoverNoiseSpec, RoverSpec

WALL_M = 10.0
RIG = {
    "name": "yard",
    "seed": 7,
    "scene": {"plane": [{"size_m": [80.0, 80.0]}], "box": [{"position_m": [WALL_M + 0.5, 0.0, 2.0], "size_m": [1.0, 60.0, 8.0]}]},
    "rover": [{"number": 1, "drive": {"steered_by": "buttons", "lidar": {"profile": "vlp16", "unit": "ideal"}}}],
}


def with_rover(changes):
    return RIG | {"rover": [RIG["rover"][0] | changes]}


def cycles(rig, seconds):
    """Pose and points of each cycle, by time stamps."""
    poses, points = {}, defaultdict(list)
    for packet in hilsim.Emulator(rig).packets(0.0, seconds):
        (stamp,) = struct.unpack_from("<d", packet.payload)
        if packet.stream == "pose":
            poses[stamp] = np.frombuffer(packet.payload, "<f4", offset=8).astype(float)
        elif packet.stream == "lidar":
            points[stamp].append(np.frombuffer(packet.payload, "<f4", offset=20).reshape(-1, 3).astype(float))
    return [(poses[stamp], np.concatenate(points[stamp])) for stamp in poses]


def on_the_wall(points):
    """East, north and up from the lidar, 1 m above the ground, of the points that lie on the wall."""
    east, up, south = points.T
    found = (np.abs(east - WALL_M) < 0.2) & (up > 0.3)
    return np.stack([east, -south, up - 1.0], axis=1)[found]


def test_its_points_have_the_sensors_noise_along_the_ray_and_its_beams():
    [(pose, points), *_] = cycles(RIG, 0.35)
    assert not pose.any()
    hit = on_the_wall(points)
    assert len(hit) > 2000
    range_m = np.linalg.norm(hit, axis=1)
    error_m = range_m - WALL_M * range_m / hit[:, 0]  # what lies behind or before the wall, along the ray
    assert abs(error_m.mean()) < 0.002
    near = hit[:, 0] / range_m > 0.94
    assert error_m[near].std() == pytest.approx(0.0053, rel=0.1)  # the white part at concrete's 35 %; the ripple is a unit's, and this one is ideal
    assert error_m[~near].std() > 1.2 * error_m[near].std()  # what comes back is weaker
    elevation_deg = np.degrees(np.arcsin(hit[:, 2] / range_m))
    assert {round(value) for value in elevation_deg} <= set(range(-15, 16, 2))


def test_a_rover_that_believes_to_be_elsewhere_has_its_points_there_too():
    rig = with_rover({"drift": {"position_m": 1.0, "height_m": 0.4, "heading_deg": 8.0, "time_s": 0.3}})
    errors = []
    for (pose, points), (_, true) in zip(cycles(rig, 0.65), cycles(RIG, 0.65), strict=True):
        heading = math.radians(pose[4])
        east, up, south = (points - pose[:3]).T
        north = -south
        back = np.stack([math.cos(heading) * east + math.sin(heading) * north, up, -(math.cos(heading) * north - math.sin(heading) * east)], axis=1)
        np.testing.assert_allclose(back, true, atol=1e-4)
        errors.append(pose[[0, 1, 2, 4]])
    assert np.abs(errors).min() > 0.0
    assert len({tuple(error) for error in errors}) == len(errors)


def drifting(count, *, every=1, **spec):
    """Errors of a rover after each cycle."""
    fleet = allocate_fleet(1)
    set_up(fleet, 0, RoverSpec(number=3, file="none", drift=RoverDriftSpec(**spec)))
    found = []
    for cycle in range(every, count + 1, every):
        fleet.counters[0, RoverCount.CYCLE] = cycle
        drift_on(fleet, 0, np.uint64(11))
        found.append(fleet.error[0].copy())
    return np.array(found)


def test_an_error_has_its_deviation_from_the_first_cycle_on_and_is_forgotten_in_its_time():
    found = drifting(60_000, position_m=2.0, height_m=0.5, heading_deg=3.0, time_s=2.0)
    expected = {Error.EAST_M: 2.0, Error.SOUTH_M: 2.0, Error.UP_M: 0.5, Error.HEADING_RAD: math.radians(3.0)}
    for column, deviation in expected.items():
        series = found[:, column]
        assert series.std() == pytest.approx(deviation, rel=0.06)
        assert abs(series.mean()) < 0.1 * deviation
        for lag_s in (0.5, 2.0, 4.0):
            lag = round(lag_s * 10)
            kept = np.mean(series[lag:] * series[:-lag]) / np.mean(series**2)
            assert kept == pytest.approx(math.exp(-lag_s / 2.0), abs=0.06)
    pairs = np.corrcoef(found[:, :4].T) - np.eye(4)
    assert np.abs(pairs).max() < 0.06
    begins = np.array([first_error(number) for number in range(300)])
    assert begins.std() == pytest.approx(2.0, rel=0.12)


def first_error(number):
    fleet = allocate_fleet(1)
    set_up(fleet, 0, RoverSpec(number=number, file="none", drift=RoverDriftSpec(position_m=2.0)))
    drift_on(fleet, 0, np.uint64(11))
    return fleet.error[0, Error.EAST_M]


def test_an_error_is_the_same_whichever_cycles_were_left_out():
    np.testing.assert_array_equal(drifting(60, every=20), drifting(60)[19::20])


def test_a_rover_without_drift_and_one_whose_deviations_are_0_send_the_same():
    still = with_rover({"drift": {"position_m": 0.0, "heading_deg": 0.0}})
    for (pose, points), (other_pose, other_points) in zip(cycles(RIG, 0.25), cycles(still, 0.25), strict=True):
        np.testing.assert_array_equal(pose, other_pose)
        np.testing.assert_array_equal(points, other_points)


def test_noise_of_the_emulator_is_added_only_where_nothing_else_errs_or_it_is_asked_for():
    spec, drift, lidar = RoverNoiseSpec(), RoverDriftSpec(), RoverDriveSpec(steered_by="buttons", lidar=RoverLidarSpec())
    assert RoverSpec(number=1, file="x").added_noise == spec
    assert RoverSpec(number=1, drive=replace(lidar, lidar=None)).added_noise == spec
    none = RoverNoiseSpec(position_m=0.0, rotation_deg=0.0, point_m=0.0)
    assert RoverSpec(number=1, file="x", drift=drift).added_noise == none
    assert RoverSpec(number=1, drive=lidar).added_noise == none
    assert RoverSpec(number=1, drive=lidar, noise=spec).added_noise == spec


def test_another_sensor_in_the_rig_changes_nothing_of_a_rovers_lidar(tmp_path):
    other = RIG | {"sensor": [{"name": "roof"}]}
    one, two = (rig_of_table(rig, tmp_path / "rig.toml").settings["rover"][0] for rig in (RIG, other))
    assert one == two


def test_kernels_of_a_rovers_lidar_are_known_to_be_needed(tmp_path):
    """A rig of rovers with ideal rays that was compiled before says nothing of it."""
    ideal = RIG | {"rover": [{"number": 1, "drive": {"steered_by": "buttons"}}]}
    needs, of_ideal = (kernel_needs(rig_of_table(rig, tmp_path / "rig.toml")) for rig in (RIG, ideal))
    assert set(needs) - set(of_ideal) == {"rover-velodyne"}


def test_no_noise_takes_the_drift_away(tmp_path):
    table = with_rover({"drift": {"position_m": 3.0}})
    table["rover"].append({"number": 2, "file": "x.dat"})
    (tmp_path / "x.dat").write_text("0,0,0,0,0,0; 1,2,3\n")
    rig = rig_of_table(table, tmp_path / "rig.toml", Changes(no_noise=True))
    assert (rig.spec.part("rover")[0].drift.position_m, rig.spec.part("rover")[0].drift.heading_deg, rig.spec.part("rover")[1].drift) == (
        0.0,
        0.0,
        None,
    )


@pytest.mark.parametrize(
    ("lidar", "fault"),
    [
        ({"profile": "none"}, r"rover\[0\]\.drive\.lidar\.profile"),
        ({"override": {"range_noise": 1}}, r"rover\[0\]\.drive\.lidar\.override"),
        ({"sub_rays": 5}, r"rover\[0\]\.drive\.lidar\.sub_rays must be one of 1, 7, 19, got 5"),
        ({"rotation_rate_rpm": 601}, r"rover\[0\]\.drive\.lidar\.rotation_rate_rpm"),
    ],
)
def test_a_lidar_that_cannot_be_is_refused_with_its_place(tmp_path, lidar, fault):
    table = RIG | {"rover": [{"number": 1, "drive": {"steered_by": "buttons", "lidar": lidar}}]}
    with pytest.raises(ConfigError, match=fault):
        rig_of_table(table, tmp_path / "rig.toml")


def test_a_cycle_must_not_hold_more_points_than_a_scan_may(tmp_path):
    table = RIG | {"rover": [{"number": 1, "rate_hz": 0.5, "drive": {"steered_by": "buttons", "lidar": {"return_mode": "dual"}}}]}
    with pytest.raises(ConfigError, match=r"rover\[0\]\.drive\.lidar\.points of a cycle must be .*100,?000"):
        rig_of_table(table, tmp_path / "rig.toml")


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"position_m": -1.0}, "position_m must be 0 to 1000000"),
        ({"heading_deg": math.nan}, "heading_deg must be 0 to 1000000"),
        ({"time_s": 0.0}, "time_s must be 0.01 to 1000000, got 0.0"),
    ],
)
def test_a_drift_that_cannot_be_is_refused(values, fault):
    with pytest.raises(ValueError, match=fault):
        RoverDriftSpec(**values)
