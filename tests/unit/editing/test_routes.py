"""Ways through points, and places that objects snap to."""

import math

import pytest

from hilsim.config.parse import collect_faults
from hilsim.editing.routes import Snap, route, route_faults
from hilsim.world.scene.object_specs import MotionSpec

CORNER = [(0.0, 0.0, 0.0), (3.0, 0.0, 0.0), (3.0, 4.0, 0.0)]


def test_times_follow_from_the_speed_and_the_object_turns_on_the_spot_at_a_corner():
    found = route(CORNER, 2.0, 10.0)
    assert [way["time_s"] for way in found["waypoints"]] == [10.0, 11.5, 12.0, 14.0]
    assert [way["rotation_deg"][2] for way in found["waypoints"]] == [0.0, 0.0, 90.0, 90.0]
    assert [tuple(way["position_m"]) for way in found["waypoints"]] == [CORNER[0], CORNER[1], CORNER[1], CORNER[2]]


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("loop", [False, True])
def test_every_way_is_a_valid_motion(smooth, loop):
    spec, faults = collect_faults(MotionSpec, route([*CORNER, (-2.0, 5.0, 1.0)], 1.3, 7.25, loop=loop, smooth=smooth))
    assert faults == []
    assert spec.loop is loop
    assert spec.waypoints[-1].position_m == ((0.0, 0.0, 0.0) if loop else (-2.0, 5.0, 1.0))


def test_a_straight_way_has_a_waypoint_a_point():
    assert len(route([(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (2.0, 0.0, 0.0)], 1.0, 0.0)["waypoints"]) == 3


def test_all_faults_of_a_way_are_reported_at_once():
    faults = route_faults([(0.0, 0.0, 0.0), (math.nan, 0.0, 0.0), (1e9, 0.0, 0.0)], 0.0, loop=False)
    assert [fault.partition(" must")[0] for fault in faults] == ["speed_mps", "points_m[0]", "points_m[1]"]
    assert route_faults([(0.0, 0.0, 0.0)], 1.0, loop=False) == ["points_m must be at least 1 beside the place of the object, got 0"]
    assert route_faults([(0.0, 0.0, 0.0), (0.0, 0.0, 0.0)], 1.0, loop=True)[0].startswith("points_m[0] must be elsewhere than the point before")


def test_positions_snap_to_the_grid_and_angles_to_steps():
    snap = Snap(grid_m=0.1, turn_deg=15.0)
    assert snap.position((0.26, -0.04, 0.123)) == (0.3, 0.0, 0.123)
    assert snap.rotation((0.0, 7.6, -52.0)) == (0.0, 15.0, -45.0)
    assert Snap().position((0.26, -0.04, 0.123)) == (0.26, -0.04, 0.123)


def test_a_grid_out_of_bounds_is_an_error():
    with pytest.raises(ValueError, match="grid_m must be 0 to 1000, got -1"):
        Snap(grid_m=-1.0)
