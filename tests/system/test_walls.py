"""The scripted controller flies into walls and a pole with its place to be far behind them, presses for ten seconds, and is commanded to land. No clock is involved."""

import math

import pytest

from hilsim.parts.vehicle.physics.contact import MAX_PUSH_MPS2
from tests.compiled import compiled_only
from tests.wall_flights import DOWN_M, OBSTACLES, fly_into

pytestmark = [pytest.mark.extended, pytest.mark.system, compiled_only]
DESCENT_MPS = 0.7
AFTER_DESCENT_S = 3.0
"""The scripted controller's own: 1 s until it detects the ground, 2 s until it disarms."""
UNLOADING_S = 8.0
"""At most: until its thrust is so low that friction holds it no more."""


@pytest.mark.parametrize(("obstacle", "speed_mps"), [*((obstacle, 3.0) for obstacle in OBSTACLES), ("wall head-on", 1.0), ("pole", 1.0)])
def test_a_vehicle_commanded_to_land_beside_an_obstacle_comes_down_whole_with_a_good_estimate_of_its_velocity(obstacle, speed_mps):
    _, row = fly_into(obstacle, speed_mps, guards=True)
    assert (row.crashed, row.warnings) == (False, ())
    least_s = row.told_height_m / DESCENT_MPS
    assert row.landed_s is not None
    assert least_s < row.landed_s < least_s + AFTER_DESCENT_S + UNLOADING_S
    assert row.impact_s <= row.closing_mps / MAX_PUSH_MPS2 + 0.01
    assert row.velocity_error_mps < 0.3
    assert row.fastest_turn_radps < 3.0  # the controller's own


@pytest.mark.parametrize("obstacle", ["wall head-on", "pole"])
def test_an_impact_that_breaks_the_vehicle_lets_it_fall_to_the_foot_of_the_obstacle(obstacle):
    _, row = fly_into(obstacle, 8.0, guards=True)
    assert row.crashed
    assert row.landed_s == pytest.approx(math.sqrt(2.0 * row.told_height_m / 9.80665), abs=0.2)
    assert row.end_m[2] < 0.3


@pytest.mark.parametrize("obstacle", OBSTACLES)
@pytest.mark.parametrize("speed_mps", [1.0, 3.0])
def test_a_vehicle_without_guards_loses_blades_and_falls_to_the_foot_of_the_obstacle(obstacle, speed_mps):
    _, row = fly_into(obstacle, speed_mps, guards=False)
    assert 1 <= row.broken_rotors <= 3
    assert row.landed_s == pytest.approx(math.sqrt(2.0 * (row.told_height_m - DOWN_M) / 9.80665), abs=0.3)
    assert row.slid_m < 0.1  # the blades break at the touch
