"""A rover that drives: its way, its attitude, and its scan, each computed another way."""

import math

import numpy as np
import pytest

from hilsim.parts.rovers.driving import Buttons, DriveState, allocate_scan_memory, build_drive, move, scan, stand
from hilsim.parts.rovers.specs import RoverDriveSpec
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.primitives import box, plane
from hilsim.world.scene.world import SceneObject, build_world

S = 1_000_000_000
GROUND = SceneObject(mesh=plane((200.0, 200.0), DEFAULTS["concrete"]), placement=Pose())


def world_of(*objects):
    return build_world([GROUND, *objects])


def slope(rotation_deg):
    return build_world([SceneObject(mesh=plane((200.0, 200.0), DEFAULTS["concrete"]), placement=mounting((0.0, 0.0, 0.0), rotation_deg))])


@pytest.fixture
def rover():
    def make(**keys):
        spec = RoverDriveSpec(**({"steered_by": "buttons"} | keys))
        drive, state = build_drive(spec)
        return drive, state, allocate_scan_memory(spec.columns * spec.rows)

    return make


def test_forward_and_back_go_along_the_heading(rover):
    drive, state, _ = rover(heading_deg=90.0, speed_mps=2.0)
    move(drive, state, Buttons.FORWARD, 3 * S)
    assert state[:4] == pytest.approx([0.0, 6.0, 0.0, math.pi / 2], abs=1e-9)
    move(drive, state, Buttons.BACK, 1 * S)
    assert state[DriveState.Y] == pytest.approx(4.0)


def test_left_and_right_turn_in_place_and_together_do_nothing(rover):
    drive, state, _ = rover(turn_dps=30.0)
    move(drive, state, Buttons.LEFT, 2 * S)
    assert math.degrees(state[DriveState.HEADING_RAD]) == pytest.approx(60.0)
    move(drive, state, Buttons.RIGHT, 3 * S)
    assert math.degrees(state[DriveState.HEADING_RAD]) == pytest.approx(-30.0)
    before = state.copy()
    move(drive, state, 15, 5 * S)
    assert np.array_equal(state, before)


def test_driving_while_turning_is_a_circle_of_speed_by_rate(rover):
    drive, state, _ = rover(speed_mps=1.0, turn_dps=math.degrees(0.5))
    places = []
    for _ in range(126):
        move(drive, state, Buttons.FORWARD | Buttons.LEFT, S // 10)
        places.append(state[:2].copy())
    radius = np.linalg.norm(np.array(places) - [0.0, 2.0], axis=1)
    assert np.allclose(radius, 2.0, atol=0.005)
    assert np.allclose(places[-1], [0.0, 0.0], atol=0.1)


def test_waypoints_are_visited_in_their_order_and_again(rover):
    corners = ((4.0, 0.0), (4.0, 4.0), (0.0, 4.0), (0.0, 0.0))
    drive, state, _ = rover(steered_by="waypoints", waypoints_m=corners, turn_dps=180.0)
    visited = []
    for _ in range(600):
        place = int(state[DriveState.WAYPOINT])
        move(drive, state, 0, S // 10)
        if int(state[DriveState.WAYPOINT]) != place:
            visited.append(place)
            assert math.dist(state[:2], corners[place]) < 0.3
    assert visited[:8] == [0, 1, 2, 3, 0, 1, 2, 3]


def test_a_way_that_is_no_loop_ends_at_its_last_waypoint(rover):
    drive, state, _ = rover(steered_by="waypoints", waypoints_m=((3.0, 0.0),), loop=False)
    move(drive, state, 0, 20 * S)
    assert math.dist(state[:2], (3.0, 0.0)) <= 0.2


def test_it_rests_on_the_ground_wherever_that_is(rover):
    drive, state, memory = rover(position_m=(3.0, 4.0, 0.5))
    stand(drive, state, world_of(), 0, memory)
    assert state[DriveState.Z] == pytest.approx(0.0, abs=1e-6)
    assert state[[DriveState.ROLL_RAD, DriveState.PITCH_UP_RAD]] == pytest.approx([0.0, 0.0], abs=1e-6)
    ledge = SceneObject(mesh=box((40.0, 40.0, 1.0), DEFAULTS["concrete"]), placement=Pose(position_m=(0.0, 0.0, 0.0)))
    stand(drive, state, world_of(ledge), 0, memory)
    assert state[DriveState.Z] == pytest.approx(0.5, abs=1e-6)


def test_on_a_slope_it_pitches_and_rolls_with_it(rover):
    for heading_deg, roll_deg, pitch_up_deg in ((0.0, 0.0, 10.0), (180.0, 0.0, -10.0), (90.0, -10.0, 0.0)):
        drive, state, memory = rover(heading_deg=heading_deg)
        stand(drive, state, slope((0.0, -10.0, 0.0)), 0, memory)  # rises towards the east
        assert math.degrees(state[DriveState.PITCH_UP_RAD]) == pytest.approx(pitch_up_deg, abs=0.01)
        assert math.degrees(state[DriveState.ROLL_RAD]) == pytest.approx(roll_deg, abs=0.01)


def test_beyond_the_edge_of_the_world_it_keeps_its_height(rover):
    drive, state, memory = rover(position_m=(500.0, 0.0, 7.0))
    stand(drive, state, world_of(), 0, memory)
    assert state[DriveState.Z] == 7.0


def test_points_lie_on_what_there_is_in_a_frame_with_y_up(rover):
    wall = SceneObject(mesh=box((1.0, 100.0, 100.0), DEFAULTS["concrete"]), placement=Pose(position_m=(10.5, 0.0, 0.0)))
    drive, state, memory = rover(columns=360, rows=3, elevation_min_deg=-30.0, elevation_max_deg=0.0, position_m=(2.0, 1.0, 0.0), heading_deg=30.0)
    world = world_of(wall)
    stand(drive, state, world, 0, memory)
    count = scan(drive, state, world, 0, memory)
    x, y, z = memory.points[:count].T
    on_ground, on_wall = np.abs(y) < 1e-3, np.abs(x - 10.0) < 1e-3
    assert (on_ground | on_wall).all()
    assert on_ground.sum() > 300
    assert on_wall.sum() > 50
    assert np.ptp(z[on_wall]) > 20.0
    assert memory.pose.tolist() == pytest.approx([2.0, 0.0, -1.0, 0.0, 30.0, 0.0], abs=1e-4)


def test_a_ray_that_hits_nothing_is_no_point(rover):
    drive, state, memory = rover(elevation_min_deg=10.0, elevation_max_deg=20.0)
    assert scan(drive, state, world_of(), 0, memory) == 0


def test_a_scan_while_it_climbs_is_turned_with_the_rover(rover):
    """On a slope of 10 degrees level rays of the rover run along the slope and never hit it; those a degree below it do."""
    drive, state, memory = rover(columns=36, rows=1, elevation_min_deg=0.0, elevation_max_deg=0.0)
    world = slope((0.0, -10.0, 0.0))
    stand(drive, state, world, 0, memory)
    assert scan(drive, state, world, 0, memory) == 0
    drive, _, memory = rover(columns=36, rows=1, elevation_min_deg=-5.0, elevation_max_deg=-5.0)
    assert scan(drive, state, world, 0, memory) == 36
