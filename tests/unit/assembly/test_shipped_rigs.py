"""Shipped rigs with a vehicle start where nothing that moves comes near, and fly what they promise."""

import dataclasses

import numpy as np
import pytest

from hilsim.assembly.build import build_scenery
from hilsim.config.profiles import profiles_directory
from hilsim.config.rig import load_rig
from hilsim.parts.vehicle.autopilot.loop_setup import build_loop_context, build_loop_setup, flown_track, open_line
from hilsim.parts.vehicle.physics.multirotor import legs_down
from hilsim.world.geometry.tracks import keyed_pose, track_state
from tests.compiled import compiled_only

S = 1_000_000_000
MAX_TRAFFIC = 40
CLEAR_M = 3.0
_STEP_NS = 50_000_000
_RIGS = [load_rig(path) for path in sorted((profiles_directory() / "rigs").glob("*.toml"))]
WITH_VEHICLE = [rig for rig in _RIGS if rig.spec.part("vehicle")]
HELD = [rig for rig in WITH_VEHICLE if rig.spec.part("vehicle")[0].controller.kind == "hold"]


def name_of(rig):
    return rig.spec.name


def with_traffic(rig, cars):
    scene = dataclasses.replace(rig.spec.scene, generator_moving_cars=cars)
    return dataclasses.replace(rig, spec=dataclasses.replace(rig.spec, scene=scene))


def nearest_m(world, place_m):
    """How near the sphere about any mover comes to a place, over a round of each."""
    nearest = np.inf
    for mover in range(len(world.radius_m)):
        first, count, period_ns = int(world.key_first[mover]), int(world.key_count[mover]), int(world.period_ns[mover])
        for at_ns in range(0, max(period_ns, _STEP_NS), _STEP_NS):
            keys = world.key_time_ns, world.key_position_m, world.key_arrival_mps, world.key_departure_mps, world.key_orientation
            position, _ = keyed_pose(*keys, first, count, period_ns, at_ns)
            nearest = min(nearest, float(np.hypot(position[0] - place_m[0], position[1] - place_m[1])) - float(world.radius_m[mover]))
    return nearest


def test_rigs_with_a_vehicle_are_shipped():
    assert {name_of(rig) for rig in WITH_VEHICLE} >= {"px4", "flight"}


@pytest.mark.extended
@compiled_only
@pytest.mark.parametrize("rig", WITH_VEHICLE, ids=name_of)
def test_nothing_that_moves_comes_near_where_a_shipped_vehicle_is_and_lands_whatever_the_traffic(rig):
    world = build_scenery(with_traffic(rig, MAX_TRAFFIC)).world
    (spec,) = rig.spec.part("vehicle")
    places = [spec.position_m, *(waypoint.position_m for waypoint in spec.waypoint if waypoint.position_m[2] < 2.0)]
    assert len(world.radius_m) >= MAX_TRAFFIC
    assert min(nearest_m(world, place) for place in places) > CLEAR_M


@compiled_only
@pytest.mark.parametrize("rig", HELD, ids=name_of)
def test_a_shipped_vehicle_that_flies_itself_keeps_to_its_way_and_rests_on_its_legs_at_its_end(rig):
    (spec,), (profile,) = rig.spec.part("vehicle"), rig.settings["vehicle"]
    end_ns = round(spec.waypoint[-1].time_s * 1e9) + 5 * S
    made = build_loop_setup(spec, profile, open_line("hold"), seed=rig.spec.seed, rate_hz=spec.controller.rate_hz)
    flown = flown_track(made, build_scenery(rig).world, end_ns)
    wanted = build_loop_context(spec, profile, open_line("hold"), seed=rig.spec.seed, rate_hz=spec.controller.rate_hz).track
    times_ns = np.arange(round(spec.waypoint[1].time_s * 1e9), round(spec.waypoint[-2].time_s * 1e9), S // 10)
    away = np.array([np.subtract(track_state(flown, at)[0], track_state(wanted, at)[0]) for at in times_ns.tolist()])
    assert np.linalg.norm(away[:, :2], axis=1).max() < 4.5  # at corners: its waypoints turn by 90 degrees at 3.8 m/s at once, a vehicle cannot
    assert np.abs(away[:, 2]).max() < 0.6
    assert made.flight.state.crashed[0] == 0
    assert legs_down(made.context.multirotor, made.flight.state) >= 3
    np.testing.assert_allclose(made.flight.state.motion[3:6], 0.0, atol=0.01)
    np.testing.assert_allclose(made.flight.state.motion[:2], spec.waypoint[-1].position_m[:2], atol=0.5)
