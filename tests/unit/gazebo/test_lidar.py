"""What a lidar of an SDF world measures, against what is computed by hand, and against the arrays of an independent reference."""

import math

import numpy as np
import pytest

from hilsim.assembly.editing import EditableWorld
from hilsim.parts.gazebo.lidar import Noise
from hilsim.world.assets.sdf_objects import sdf_objects
from hilsim.world.geometry.poses import Pose
from hilsim.world.scene.object_specs import MotionSpec, SdfMotionSpec, WaypointSpec
from hilsim.world.scene.specs import BUILT_IN_MATERIALS
from hilsim.world.scene.world import build_world
from hilsim.world.sdf.reading import read_sdf
from hilsim.world.sdf.specs import SdfNoise
from tests.unit.gazebo.worlds import box, lidars_of, scanner, thing

AROUND = "<cylinder><radius>{}</radius><length>{}</length></cylinder>"


def ranges(path, *models):
    [lidar] = lidars_of(path / "world.sdf", *models)
    return lidar.true_ranges_m(0)


def test_a_wall_ahead_is_at_its_distance_over_the_cosine(tmp_path):
    found = ranges(tmp_path, thing("wall", box(1, 40, 4), "5.5 0 0 0 0 0"), thing("robot", "", inner=scanner(columns=5)))
    np.testing.assert_allclose(found, 5.0 / np.cos(np.linspace(-0.5, 0.5, 5)), atol=1e-3)


def test_rows_come_from_the_lowest_up_and_each_from_its_first_angle(tmp_path):
    models = thing("ground", "<plane><normal>0 0 1</normal></plane>"), thing("left", box(4, 1, 4), "0 3.5 0 0 0 0")
    robot = thing("robot", "", "0 0 1 0 0 0", inner=scanner(columns=2, rows=3, azimuth=(0.0, math.pi / 2), elevation=(-0.5, 0.5)))
    found = ranges(tmp_path, *models, robot).reshape(3, 2)
    np.testing.assert_allclose(found[0], [1.0 / math.sin(0.5), 1.0 / math.sin(0.5)], atol=1e-3)
    np.testing.assert_allclose(found[1], [math.inf, 3.0], atol=1e-3)
    np.testing.assert_allclose(found[2], [math.inf, math.inf])  # over the wall's 2 m


def test_the_sensors_pose_turns_its_rays(tmp_path):
    robot = thing("robot", "", "1 2 0 0 0 1.5707963267948966", inner=scanner(columns=1, azimuth=(0.0, 0.0)))
    assert ranges(tmp_path, thing("wall", box(4, 1, 4), "1 6.5 0 0 0 0"), robot)[0] == pytest.approx(4.0, abs=1e-3)


@pytest.mark.parametrize(
    ("geometry", "expected"),
    [
        ("<sphere><radius>1</radius></sphere>", 4.0),
        (AROUND.format(0.5, 2), 4.5),
        ("<capsule><radius>0.75</radius><length>1</length></capsule>", 4.25),
        ("<ellipsoid><radii>2 1 1</radii></ellipsoid>", 3.0),
        ("<cone><radius>1</radius><length>2</length></cone>", 4.5),
        ("<plane><normal>-1 0 0</normal></plane>", 5.0),
    ],
)
def test_every_shape_is_met_where_its_surface_is(tmp_path, geometry, expected):
    found = ranges(tmp_path, thing("one", geometry, "5 0 0 0 0 0"), thing("robot", "", inner=scanner(columns=1, azimuth=(0.0, 0.0))))
    assert found[0] == pytest.approx(expected, abs=2e-3)


def test_a_ray_that_begins_within_a_solid_meets_what_is_behind_it(tmp_path):
    models = thing("wall", box(1, 40, 4), "5.5 0 0 0 0 0"), thing("near", box(0.2, 0.2, 0.2), "1 0 0 0 0 0")
    robot = thing("robot", box(0.6, 0.6, 0.6), inner=scanner(columns=1, azimuth=(0.0, 0.0)))
    shell = thing("shell", AROUND.format(3.0, 3.0))
    assert ranges(tmp_path, models[0], robot)[0] == pytest.approx(5.0, abs=1e-3)
    assert ranges(tmp_path, models[0], robot, shell)[0] == pytest.approx(5.0, abs=1e-3)
    assert ranges(tmp_path, *models, robot, shell)[0] == pytest.approx(0.9, abs=1e-3)


def test_a_solid_that_some_rays_begin_in_is_met_by_the_others(tmp_path):
    robot = thing("robot", "", inner=scanner(columns=2, azimuth=(0.0, math.pi), span=(0.5, 30.0)))
    before, behind = thing("before", box(0.4, 0.4, 0.4), "0.5 0 0 0 0 0"), thing("behind", box(1, 1, 1), "-2.5 0 0 0 0 0")
    found = ranges(tmp_path, before, behind, robot)
    assert found.tolist() == [math.inf, pytest.approx(2.0, abs=1e-3)]


def moving(model, *places):
    waypoints = tuple(
        WaypointSpec(time_s=float(time_s), position_m=place[:3], rotation_deg=(0.0, 0.0, place[3])) for time_s, place in enumerate(places)
    )
    return SdfMotionSpec(model=model, motion=MotionSpec(waypoints=waypoints))


def test_a_lidar_that_travels_measures_from_where_it_is_and_never_its_own_body(tmp_path):
    wall, robot = thing("wall", box(1, 40, 4), "10.5 0 0 0 0 0"), thing("robot", box(0.6, 0.6, 0.6), inner=scanner(columns=1, azimuth=(0.0, 0.0)))
    [lidar] = lidars_of(tmp_path / "world.sdf", wall, robot, motions=(moving("robot", (0, 0, 0, 0), (4, 0, 0, 0), (4, 0, 0, 60)),))
    found = [lidar.true_ranges_m(round(time_s * 1e9))[0] for time_s in (0.0, 0.5, 1.0, 2.0, 3.0)]
    np.testing.assert_allclose(found, [10.0, 8.0, 6.0, 12.0, 12.0], atol=1e-3)
    position_m, orientation = lidar.pose_at(1_500_000_000).position_m, lidar.pose_at(1_500_000_000).orientation
    assert position_m == pytest.approx((4.0, 0.0, 0.0))
    assert orientation == pytest.approx((math.cos(math.radians(15)), 0.0, 0.0, math.sin(math.radians(15))))


def test_a_solid_that_comes_over_a_lidar_lets_its_rays_out_and_one_that_passes_is_met(tmp_path):
    wall, robot = thing("wall", box(1, 40, 4), "10.5 0 0 0 0 0"), thing("robot", "", inner=scanner(columns=1, azimuth=(0.0, 0.0)))
    cart = thing("cart", box(2, 2, 2), "3 0 0 0 0 0")
    [lidar] = lidars_of(tmp_path / "world.sdf", wall, robot, cart, motions=(moving("cart", (5, 0, 0, 0), (0, 0, 0, 0), (0, 9, 0, 0)),))
    found = [lidar.true_ranges_m(round(time_s * 1e9))[0] for time_s in (0.0, 0.4, 1.0, 2.0)]
    np.testing.assert_allclose(found, [4.0, 2.0, 10.0, 10.0], atol=1e-3)


def test_a_lidar_that_an_actor_carries_goes_with_it(tmp_path):
    script = """<script><loop>false</loop><trajectory id="0" type="walk"><waypoint><time>0</time><pose>0 0 0 0 0 0</pose></waypoint>
    <waypoint><time>2</time><pose>4 0 0 0 0 0</pose></waypoint></trajectory></script>"""
    walker = f'<actor name="walker"><pose>1 0 0 0 0 0</pose><link name="head">{scanner(columns=1, azimuth=(0.0, 0.0))}</link>{script}</actor>'
    [lidar] = lidars_of(tmp_path / "world.sdf", thing("wall", box(1, 40, 4), "10.5 0 0 0 0 0"), walker)
    found = [lidar.true_ranges_m(round(time_s * 1e9))[0] for time_s in (0.0, 1.0, 2.0)]
    np.testing.assert_allclose(found, [9.0, 7.0, 5.0], atol=1e-3)


def test_ranges_outside_the_limits_are_misses(tmp_path):
    wall = thing("wall", "<plane><normal>-1 0 0</normal></plane>", "5 0 0 0 0 0")
    for span, expected in (((0.1, 4.9), math.inf), ((0.1, 5.1), 5.0), ((4.9, 6.0), 5.0), ((5.1, 6.0), math.inf)):
        robot = thing("robot", "", inner=scanner(columns=1, azimuth=(0.0, 0.0), span=span))
        assert ranges(tmp_path, wall, robot)[0] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(("rate", "period_ms"), [(10, 100), (30, 33), (0, 1), (60, 16), (1000, 1)])
def test_periods_are_whole_milliseconds_cut_off(tmp_path, rate, period_ms):
    [lidar] = lidars_of(tmp_path / "world.sdf", thing("robot", "", inner=scanner(rate=rate)), thing("wall", box(1, 1, 1), "5 0 0 0 0 0"))
    assert list(lidar.times_ns(1, 4 * period_ms * 1_000_000)) == [number * period_ms * 1_000_000 for number in (1, 2, 3)]
    assert next(lidar.times_ns(0, 1)) == 0


def test_noise_has_the_files_figures_and_one_bias_a_sensor():
    spec = SdfNoise(mean_m=0.02, stddev_m=0.05, bias_mean_m=0.5, bias_stddev_m=0.1)
    true_m = np.where(np.arange(40_000) % 4 == 0, np.inf, 10.0)
    biases = []
    for number in range(200):
        noise = Noise(spec, seed=3, number=number)
        biases.append(noise.bias_m)
    assert np.mean(np.abs(biases)) == pytest.approx(0.5, abs=0.03)
    assert np.std(np.abs(biases)) == pytest.approx(0.1, abs=0.02)
    assert 70 < sum(bias < 0.0 for bias in biases) < 130  # either sign is as likely
    noise = Noise(spec, seed=3, number=0)
    found = noise.on(true_m, 0.1, 30.0)
    np.testing.assert_array_equal(np.isinf(found), np.isinf(true_m))
    errors = found[np.isfinite(found)] - 10.0
    assert errors.mean() == pytest.approx(0.02 + noise.bias_m, abs=0.002)
    assert errors.std() == pytest.approx(0.05, rel=0.03)
    np.testing.assert_array_equal(found, Noise(spec, seed=3, number=0).on(true_m, 0.1, 30.0))
    assert not np.array_equal(found, Noise(spec, seed=4, number=0).on(true_m, 0.1, 30.0))


def test_noise_never_leaves_the_span_and_is_rounded_where_the_file_says_so():
    assert Noise(SdfNoise(mean_m=5.0), seed=0, number=0).on(np.array([8.0, np.inf, np.nan]), 0.1, 10.0).tolist() == [
        10.0,
        np.inf,
        pytest.approx(np.nan, nan_ok=True),
    ]
    rounded = Noise(SdfNoise(stddev_m=0.3, precision_m=0.25), seed=0, number=0).on(np.full(100, 5.0), 0.1, 10.0)
    np.testing.assert_array_equal(rounded % 0.25, 0.0)


def test_messages_bear_the_frame_the_files_pose_and_a_sequence(tmp_path):
    models = thing("robot", "", "1 2 3 0 0 0", inner=scanner(columns=4)), thing("wall", box(1, 40, 40), "9 0 0 0 0 0")
    [lidar] = lidars_of(tmp_path / "world.sdf", *models)
    found = lidar.ranges_m(0)
    scan, points = (make(found, time_ns=1_500_000_000, sequence=7) for make in (lidar.laser_scan, lidar.point_cloud))
    for message in (scan, points):
        assert b"robot::link::scanner" in message
    assert found.tobytes() in scan
    assert len(points) > 4 * 18


# -- the reference: 640 beams in each of two worlds, by geometry and by the Bullet engine ---------------------------------------------------


EXAMPLE = [
    thing("front", box(1, 1, 1), "3 0 0.5 0 0 0"),
    thing("left", AROUND.format(0.5, 1.0), "0 3 0.5 0 0 0"),
    thing("behind", box(1.5, 0.5, 1.5), "-2 -2 0.75 0 0 0.785"),
]
EDGES = {"test": 2, "example": 4}
"""Beams that pass an edge within Bullet's collision margin: it meets there what geometry misses."""


def reference_world(path, name):
    """The two worlds' geometry."""
    ground = thing("ground", "<plane><normal>0 0 1</normal><size>100 100</size></plane>")
    platform = '<collision name="body"><geometry><box><size>0.1 0.1 0.1</size></box></geometry></collision>'
    angle = 1.396263 if name == "test" else 3.14159
    sensor = scanner(columns=640, azimuth=(-angle, angle), span=(0.08, 10.0))
    robot = f'<model name="robot"><pose>0 0 0.5 0 0 0</pose><link name="link"><pose>0.05 0.05 0.05 0 0 0</pose>{platform}{sensor}</link></model>'
    others = [thing("box", box(1, 1, 1), "2 0 0.5 0 0 0")] if name == "test" else EXAMPLE
    [lidar] = lidars_of(path / "world.sdf", ground, *others, robot)
    return lidar.true_ranges_m(0)


@pytest.mark.parametrize("name", ["test", "example"])
def test_ranges_are_those_of_the_reference_by_geometry_and_of_bullet_within_3_cm(tmp_path, reference, name):
    arrays = np.load(reference("gazebo_cpu_lidar_reference.npz"))
    found = reference_world(tmp_path, name)
    exact, bullet = arrays[f"{name}_range"], arrays[f"{name}_bullet"]
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(exact))
    met = np.isfinite(exact)
    np.testing.assert_allclose(found[met], exact[met], rtol=0, atol=1e-3)
    differs = np.isfinite(found) != np.isfinite(bullet)
    assert differs.sum() == EDGES[name]
    both = np.isfinite(bullet) & met
    np.testing.assert_allclose(found[both], bullet[both], rtol=0, atol=0.03)


def test_a_lidar_sees_a_changed_world_from_its_rig_time_on_and_never_its_own_body(tmp_path):
    models = thing("wall", box(1, 40, 4), "5.5 0 0 0 0 0"), thing("robot", box(0.6, 0.6, 0.6), inner=scanner(columns=1, azimuth=(0.0, 0.0)))
    [lidar] = lidars_of(tmp_path / "world.sdf", *models)
    objects, _ = sdf_objects(read_sdf(tmp_path / "world.sdf"), BUILT_IN_MATERIALS)
    editable = EditableWorld.of(objects, build_world(objects))
    wall = next(thing.name for thing in objects if thing.name.startswith("wall"))
    lidar.see_later(10**9, editable.placed(editable.find(wall), Pose(position_m=(8.5, 0.0, 0.0))).world)
    assert [lidar.true_ranges_m(time_ns)[0] for time_ns in (10**9 - 1, 10**9)] == pytest.approx([5.0, 8.0], abs=1e-3)
