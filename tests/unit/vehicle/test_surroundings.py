"""What a vehicle finds to touch, from scenes whose planes are known."""

import numpy as np
import pytest

from hilsim.parts.vehicle.physics.multirotor import MAX_OBSTACLES, build_multirotor, state_at
from hilsim.parts.vehicle.physics.surroundings import LOOK_NS, build_surroundings, carry_planes, is_below_ground, look_around, surface_velocity
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.tracks import linear_track
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.primitives import box, cylinder, plane
from hilsim.world.scene.world import SceneObject, build_world
from tests.unit.vehicle.vehicles import BARE

GRASS = DEFAULTS["grass"]
FLOOR = SceneObject(mesh=plane((100.0, 100.0), GRASS))
NOTHING = (0.0, 0.0, 1.0, -np.inf, 0.0, 0.0, 0.0)
STANDS = (0.0, 0.0, 0.0)
NEAR_M = 5e-5
"""Corners are float32 about their tile's origin: 1.2e-5 m was seen."""
_MULTIROTOR = build_multirotor(BARE)


def looked(objects, position_m=(0.0, 0.0, 1.0), *, velocity_mps=(0.0, 0.0, 0.0), rig_ns=0, orientation=(1.0, 0.0, 0.0, 0.0)):
    state = state_at(_MULTIROTOR, position_m, orientation)
    state.motion[3:6] = velocity_mps
    around = build_surroundings(_MULTIROTOR)
    look_around(build_world(objects), _MULTIROTOR, state, rig_ns, around)
    return around


def found(around):
    return around.obstacles[np.isfinite(around.obstacles[:, 3])]


def wall(x_m):
    """A wall whose near side, towards the origin, is at ``x_m``."""
    return SceneObject(mesh=box((1.0, 40.0, 40.0), GRASS), placement=Pose(position_m=(x_m + 0.5, 0.0, 0.0)))


def test_before_the_first_look_there_is_nothing():
    around = build_surroundings(_MULTIROTOR)
    assert around.ground.tolist() == [list(NOTHING)] * len(_MULTIROTOR.point)
    assert around.obstacles.tolist() == [list(NOTHING)] * MAX_OBSTACLES
    assert around.height_m.tolist() == [np.inf]


def test_level_ground_is_under_every_point_and_no_obstacle():
    around = looked([FLOOR])
    np.testing.assert_allclose(around.ground, np.tile((0.0, 0.0, 1.0, 0.0, *STANDS), (len(around.ground), 1)), atol=NEAR_M)
    assert len(found(around)) == 0
    assert around.height_m[0] == pytest.approx(1.0, abs=NEAR_M)


def test_in_an_empty_world_there_is_no_ground_and_no_height():
    around = looked([])
    assert around.ground.tolist() == [list(NOTHING)] * len(around.ground)
    assert around.height_m.tolist() == [np.inf]


@pytest.mark.parametrize(
    ("place_m", "is_below"),
    [
        ((0.0, 0.0, 0.0), False),
        ((0.0, 0.0, -0.4), False),
        ((0.0, 0.0, -0.6), True),
        ((0.0, 0.0, -5000.0), True),
        ((0.0, 0.0, 5000.0), False),
        ((200.0, 0.0, -5.0), False),
        ((3.0, 0.0, -5.0), False),
    ],
)
def test_a_place_is_below_the_ground_if_nothing_is_below_it_and_a_still_surface_above(place_m, is_below):
    track = linear_track(np.array([0, 1_000_000_000]), [(200.0, 0.0, 0.0), (200.0, 0.0, 1.0)], [(1.0, 0.0, 0.0, 0.0)] * 2)
    moving = SceneObject(mesh=plane((1.0, 1.0), GRASS), placement=track)
    cellar = SceneObject(mesh=plane((1.0, 1.0), GRASS), placement=Pose(position_m=(3.0, 0.0, -6.0)))
    assert is_below_ground(build_world([FLOOR, moving, cellar]), place_m) is is_below
    assert not is_below_ground(build_world([]), place_m)


def test_ground_that_was_there_is_forgotten_when_it_is_gone():
    around = looked([FLOOR])
    look_around(build_world([]), _MULTIROTOR, state_at(_MULTIROTOR, (0.0, 0.0, 1.0)), LOOK_NS, around)
    assert around.ground.tolist() == [list(NOTHING)] * len(around.ground)


def test_a_leg_that_has_sunk_in_still_finds_the_ground():
    around = looked([FLOOR], (0.0, 0.0, 0.05))  # legs are 0.1 below the centre
    np.testing.assert_allclose(around.ground[:, 3], 0.0, atol=NEAR_M)


def test_a_step_is_under_the_legs_that_stand_on_it():
    step = SceneObject(mesh=box((10.0, 40.0, 0.3), GRASS), placement=Pose(position_m=(5.0, 0.0, 0.15)))
    around = looked([FLOOR, step])
    for point, ground in zip(_MULTIROTOR.point, around.ground, strict=True):
        assert ground[3] == pytest.approx(0.3 if point[0] > 0 else 0.0, abs=NEAR_M)


def test_a_slope_has_its_own_normal_and_one_too_steep_is_no_ground():
    for slope_deg, is_ground in ((30.0, True), (75.0, False)):
        tilted = SceneObject(mesh=plane((100.0, 100.0), GRASS), placement=mounting((0.0, 0.0, 0.0), (slope_deg, 0.0, 0.0)))
        around = looked([tilted], (0.0, 0.0, 3.0))
        normal = (0.0, -np.sin(np.radians(slope_deg)), np.cos(np.radians(slope_deg)))
        if is_ground:
            np.testing.assert_allclose(around.ground[:, :3], np.tile(normal, (len(around.ground), 1)), atol=NEAR_M)
        else:
            assert around.ground.tolist() == [list(NOTHING)] * len(around.ground)


def test_a_wall_is_one_obstacle_that_looks_at_the_vehicle_however_many_feelers_meet_it():
    around = looked([FLOOR, wall(0.2)])
    assert np.isfinite(around.range_m[len(_MULTIROTOR.point) + 1 :]).sum() > 9  # straight, to edges and corners of that side, and on the level
    assert len(found(around)) == 1
    np.testing.assert_allclose(found(around)[0], (-1.0, 0.0, 0.0, -0.2, *STANDS), atol=NEAR_M)


@pytest.mark.parametrize("turned_deg", [90.0, -90.0])
def test_a_sheet_looks_at_the_vehicle_from_both_of_its_sides(turned_deg):
    sheet = SceneObject(mesh=plane((40.0, 40.0), GRASS), placement=mounting((0.3, 0.0, 0.0), (0.0, turned_deg, 0.0)))
    np.testing.assert_allclose(found(looked([sheet])), [(-1.0, 0.0, 0.0, -0.3, *STANDS)], atol=NEAR_M)


def test_the_ground_near_by_is_no_obstacle():
    assert len(found(looked([FLOOR], (0.0, 0.0, 0.2)))) == 0


def test_a_corner_is_two_obstacles():
    side = SceneObject(mesh=box((40.0, 1.0, 40.0), GRASS), placement=Pose(position_m=(0.0, -0.85, 0.0)))
    planes = {tuple(np.round(row[:4], 3).tolist()) for row in found(looked([FLOOR, wall(0.3), side]))}
    assert planes == {(-1.0, 0.0, 0.0, -0.3), (0.0, 1.0, 0.0, -0.35)}


def test_the_nearest_obstacle_is_the_first():
    planes = found(looked([wall(0.38), SceneObject(mesh=box((1.0, 40.0, 40.0), GRASS), placement=Pose(position_m=(-0.7, 0.0, 0.0)))]))
    np.testing.assert_allclose(planes[0], (1.0, 0.0, 0.0, -0.2, *STANDS), atol=NEAR_M)


def test_a_wall_farther_than_the_next_look_is_not_looked_for_and_one_that_is_flown_at_is():
    assert len(found(looked([wall(0.5)]))) == 0
    assert len(found(looked([wall(0.5)], velocity_mps=(10.0, 0.0, 0.0)))) == 1


def test_beside_the_end_of_a_wall_what_is_touched_is_its_edge_and_not_the_plane_beyond_it():
    end = SceneObject(mesh=box((1.0, 40.0, 40.0), GRASS), placement=Pose(position_m=(0.8, -20.0, 0.0)))  # its edge is at (0.3, 0)
    [found_plane] = found(looked([end], (0.0, 0.2, 1.0)))
    normal = np.array([-0.3, 0.2, 0.0]) / np.hypot(0.3, 0.2)
    np.testing.assert_allclose(found_plane, (*normal, normal[0] * 0.3, *STANDS), atol=NEAR_M)


@pytest.mark.parametrize("bearing_deg", np.arange(0.0, 95.0, 5.0))
def test_a_pole_is_found_before_it_is_touched_from_every_side_and_faces_the_vehicle(bearing_deg):
    towards = np.array([np.cos(np.radians(bearing_deg)), np.sin(np.radians(bearing_deg)), 0.0])
    away_m = BARE.collision_radius_m + 0.02
    pole = SceneObject(mesh=cylinder(0.05, 4.0, GRASS), placement=Pose(position_m=tuple((away_m + 0.05) * towards)))
    planes = found(looked([pole], (0.0, 0.0, 0.0)))
    assert len(planes) == 1
    assert -planes[0, :3] @ towards > np.cos(np.radians(25.0))  # half a facet, and where the ray met it
    assert -planes[0, 3] == pytest.approx(away_m, abs=0.02)


def test_a_corner_of_two_walls_is_two_obstacles():
    planes = found(looked([wall(0.3), SceneObject(mesh=box((40.0, 1.0, 40.0), GRASS), placement=Pose(position_m=(0.0, -0.8, 0.0)))]))
    np.testing.assert_allclose(sorted(planes.tolist()), [(-1.0, 0.0, 0.0, -0.3, *STANDS), (0.0, 1.0, 0.0, -0.3, *STANDS)], atol=NEAR_M)


def test_a_ceiling_is_an_obstacle():
    roof = SceneObject(mesh=box((40.0, 40.0, 1.0), GRASS), placement=Pose(position_m=(0.0, 0.0, 1.8)))
    np.testing.assert_allclose(found(looked([FLOOR, roof])), [(0.0, 0.0, -1.0, -1.3, *STANDS)], atol=NEAR_M)


def test_rays_hit_a_moving_object_at_its_pose_at_their_time():
    times = np.array([0, 1_000_000_000])
    track = linear_track(times, [(0.0, 0.0, -0.5), (0.0, 0.0, 0.5)], [(1.0, 0.0, 0.0, 0.0)] * 2)
    lift = SceneObject(mesh=box((4.0, 4.0, 1.0), GRASS), placement=track)
    for rig_ns, height_m in ((0, 0.0), (500_000_000, 0.5)):  # a floor that rises by 1 m/s
        around = looked([lift], (0.0, 0.0, 2.0), rig_ns=rig_ns)
        np.testing.assert_allclose(around.ground, np.tile((0.0, 0.0, 1.0, height_m, 0.0, 0.0, 1.0), (len(around.ground), 1)), atol=NEAR_M)
        assert around.height_m[0] == pytest.approx(2.0 - height_m, abs=NEAR_M)


def test_a_wall_that_comes_is_looked_for_as_far_as_it_comes_and_has_its_velocity():
    times = np.array([0, 1_000_000_000])
    track = linear_track(times, [(3.0, 0.0, 0.0), (-7.0, 0.0, 0.0)], [(1.0, 0.0, 0.0, 0.0)] * 2)
    around = looked([FLOOR, SceneObject(mesh=box((4.0, 40.0, 40.0), GRASS), placement=track)], rig_ns=50_000_000)
    np.testing.assert_allclose(found(around), [(-1.0, 0.0, 0.0, -0.5, -10.0, 0.0, 0.0)], atol=1e-3)
    carry_planes(around, 0.01)
    np.testing.assert_allclose(found(around)[0, 3], -0.4, atol=1e-3)


def test_a_surface_that_turns_moves_faster_the_farther_it_is_from_its_middle():
    half = np.sqrt(0.5)
    track = linear_track(np.array([0, 1_000_000_000]), [(0.0, 0.0, 0.0)] * 2, [(1.0, 0.0, 0.0, 0.0), (half, 0.0, 0.0, half)])
    world = build_world([SceneObject(mesh=box((4.0, 4.0, 1.0), GRASS), placement=track)])
    np.testing.assert_allclose(surface_velocity(world, world.tile_count, (2.0, 0.0, 0.0), 0), (0.0, np.pi, 0.0), atol=0.01)


@pytest.mark.parametrize("moves", [False, True])
def test_surfaces_above_the_vehicle_are_not_its_ground(moves):
    track = linear_track(np.array([0, 1_000_000_000]), [(0.0, 0.0, 0.55), (1.0, 0.0, 0.55)], [(1.0, 0.0, 0.0, 0.0)] * 2)
    body = SceneObject(mesh=box((4.0, 4.0, 0.6), GRASS), placement=track if moves else Pose(position_m=(0.0, 0.0, 0.55)))
    around = looked([FLOOR, body], (0.0, 0.0, 0.1))
    np.testing.assert_allclose(around.ground[:4], np.tile((0.0, 0.0, 1.0, 0.0, *STANDS), (4, 1)), atol=NEAR_M)
    assert around.height_m[0] == pytest.approx(0.1, abs=NEAR_M)


def test_a_vehicle_deep_inside_the_ground_still_finds_it():
    around = looked([FLOOR], (0.0, 0.0, -0.25))  # the legs 0.35 m below
    np.testing.assert_allclose(around.ground[:4, 3], 0.0, atol=NEAR_M)
