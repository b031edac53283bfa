"""What the loop that flies is handed, and a flight by the built-in position hold."""

import numpy as np
import pytest

from hilsim.parts.vehicle.autopilot.change_table import Kind
from hilsim.parts.vehicle.autopilot.loop_context import ControlWord
from hilsim.parts.vehicle.autopilot.loop_setup import (
    TimedChange,
    build_loop_context,
    build_loop_setup,
    flown_track,
    open_line,
    placed_motion,
    standing_height_m,
    start_pose,
)
from hilsim.parts.vehicle.physics.multirotor import build_multirotor
from hilsim.parts.vehicle.specs import ControllerSpec, FlightWaypointSpec, VehicleRigSpec
from hilsim.protocols.mavlink.messages import HIL_FLAG, PROTOCOL_VERSION
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import track_state
from hilsim.world.platforms.wind import WindSpec, build_wind
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.primitives import plane
from hilsim.world.scene.world import SceneObject, build_world
from tests.compiled import compiled_only
from tests.unit.vehicle.vehicles import BARE, profile

MS, S = 1_000_000, 1_000_000_000
HELD = VehicleRigSpec(position_m=(1.0, 2.0, 0.0), yaw_deg=0.0)


def made(spec=HELD, *, rate_hz=250, vehicle=BARE):
    return build_loop_setup(spec, vehicle, open_line(spec.controller.kind), seed=1, rate_hz=rate_hz)


def test_a_vehicle_rests_on_its_lowest_leg_with_the_given_heading():
    assert standing_height_m(build_multirotor(BARE)) == pytest.approx(0.1)
    pose = start_pose(VehicleRigSpec(position_m=(1.0, 2.0, 3.0), yaw_deg=90.0), BARE)
    assert pose.position_m == pytest.approx((1.0, 2.0, 3.1))
    assert pose.orientation == pytest.approx((np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)))


def test_a_vehicle_begins_at_rest_without_a_link_and_may_be_put_back_there():
    flight, shared = made().flight, made().shared
    assert flight.state.motion.tolist() == [1.0, 2.0, 0.1, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert flight.start.tolist() == flight.state.motion.tolist()
    assert not np.shares_memory(flight.start, flight.state.motion)
    assert shared.control[ControlWord.LINK] == -1
    assert shared.wakes.tolist() == [-1] * 8


@pytest.mark.parametrize(
    ("rate_hz", "magnetometer_hz", "barometer_hz", "every"),
    [(250, 100, 50, (3, 5)), (500, 100, 50, (5, 10)), (100, 100, 50, (1, 2)), (50, 100, 50, (1, 1)), (200, 30, 100, (7, 2))],
)
def test_slow_sensors_come_at_most_as_often_as_asked_for(rate_hz, magnetometer_hz, barometer_hz, every):
    spec = VehicleRigSpec(controller=ControllerSpec(rate_hz=rate_hz, magnetometer_hz=magnetometer_hz, barometer_hz=barometer_hz, gps_hz=5))
    instruments = made(spec, rate_hz=rate_hz).context.instruments
    assert (instruments.magnetometer_every, instruments.barometer_every) == every
    assert instruments.frame_ns == S // rate_hz
    assert instruments.gps_ns == 200 * MS


def test_a_rate_that_is_no_whole_number_of_steps_is_refused():
    with pytest.raises(ValueError, match=r"^rate_hz must be one of 50, 100, 125, 200, 250, 500, got 119$"):
        build_loop_context(HELD, BARE, open_line("serial"), seed=1, rate_hz=119)


def test_only_the_hold_steers_itself_and_only_lockstep_waits():
    assert made().context.is_held
    spec = VehicleRigSpec(controller=ControllerSpec(kind="tcp", lockstep=True))
    assert (made(spec).context.is_held, made(spec).context.is_lockstep) == (False, True)


def test_hilsims_heartbeat_is_one_that_a_board_starts_mavlink_for():
    buffers = made(VehicleRigSpec(controller=ControllerSpec(kind="tcp", system_id=3, component_id=7))).buffers
    said = buffers.heartbeat.record[0]
    fields = ("type", "autopilot", "base_mode", "system_status", "mavlink_version")
    assert [int(said[name]) for name in fields] == [0, 8, HIL_FLAG, 4, PROTOCOL_VERSION]
    assert (buffers.origin.system, buffers.origin.component) == (3, 7)


def flight(waypoints, seconds, *, seed=1, wind=None, changes=()):
    spec = VehicleRigSpec(yaw_deg=0.0, waypoint=waypoints, wind=wind or WindSpec())
    world = build_world([SceneObject(mesh=plane((100.0, 100.0), DEFAULTS["grass"]))])
    built = build_loop_setup(spec, profile("iris"), open_line("hold"), seed=seed, rate_hz=250)
    return flown_track(built, world, round(seconds * S), changes), built


def place(track, time_s):
    return np.array(track_state(track, round(time_s * S))[0])


UP = (
    FlightWaypointSpec(time_s=0.0, position_m=(0.0, 0.0, 0.3)),
    FlightWaypointSpec(time_s=4.0, position_m=(0.0, 0.0, 3.0)),
    FlightWaypointSpec(time_s=10.0, position_m=(4.0, -3.0, 3.0), yaw_deg=90.0),
)


@compiled_only
def test_the_hold_flies_its_waypoints_and_stays_at_the_last():
    track, built = flight(UP, 16.0)
    np.testing.assert_allclose(place(track, 0.0)[:2], (0.0, 0.0), atol=1e-9)
    for time_s in (13.0, 16.0):
        np.testing.assert_allclose(place(track, time_s), (4.0, -3.0, 3.0), atol=0.25)
    assert not built.flight.state.crashed[0]
    _, turn = track_state(track, 16 * S)
    assert 2.0 * np.degrees(np.arctan2(turn[3], turn[0])) == pytest.approx(90.0, abs=5.0)


@compiled_only
def test_a_flight_is_the_same_each_time_it_is_flown_and_longer_ones_begin_alike():
    gusts = WindSpec(speed_mps=3.0, from_deg=30.0, turbulence_ratio=0.2)
    first, again, longer = (flight(UP, seconds, wind=gusts)[0] for seconds in (5.0, 5.0, 7.0))
    for time_s in np.arange(0.0, 5.0, 0.37):
        assert place(first, time_s).tolist() == place(again, time_s).tolist() == place(longer, time_s).tolist()


@compiled_only
def test_a_vehicle_without_waypoints_holds_the_place_where_it_is():
    track, _ = flight((), 3.0)
    assert np.linalg.norm(place(track, 3.0)[:2]) < 0.05


@compiled_only
def test_rows_of_a_flight_are_four_milliseconds_apart_and_reach_past_its_end():
    track, built = flight((), 0.1)
    assert np.diff(track.time_ns).tolist() == [4 * MS] * (len(track.time_ns) - 1)
    assert track.time_ns[-1] >= 100 * MS
    assert built.flight.state.time_ns[0] == track.time_ns[-1]


GALE = TimedChange(3 * S + 500_000, Kind.WIND, build_wind(WindSpec(speed_mps=9.0, from_deg=270.0, turbulence_ratio=0.2), 1, 0))
ASIDE = TimedChange(4 * S + 2 * MS, Kind.PLACE, placed_motion(build_multirotor(profile("iris")), (6.0, 5.0, 2.0), (0.0, 0.0, 90.0)))
BACK = TimedChange(6 * S, Kind.RESET)


@compiled_only
def test_timed_changes_begin_with_a_step_and_leave_what_was_flown_before():
    plain, changed = flight(UP, 8.0)[0], flight(UP, 8.0, changes=[GALE, ASIDE, BACK])[0]
    for at_s in np.arange(0.0, 3.0, 0.11):
        assert place(plain, at_s).tolist() == place(changed, at_s).tolist()
    assert place(changed, 3.9)[0] - place(plain, 3.9)[0] > 0.05  # blown to the east
    before, after = (track_state(changed, 4 * S + 2 * MS + by_ns) for by_ns in (-1, 0))
    np.testing.assert_allclose(before[0], place(changed, 4.001), atol=0.02)
    assert after[0][:2] == (6.0, 5.0)
    np.testing.assert_allclose(after[1], (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)), atol=1e-12)
    start = flight(UP, 1.0)[0]
    np.testing.assert_allclose(place(changed, 6.0), place(start, 0.0), atol=1e-12)


@compiled_only
def test_a_flight_with_changes_does_not_depend_on_how_far_it_was_flown():
    changes = [BACK, TimedChange(6 * S, Kind.WIND, build_wind(WindSpec(), 1, 0))]
    short, long = (
        flight(UP, seconds, wind=WindSpec(speed_mps=5.0, turbulence_ratio=0.3), changes=[GALE, ASIDE, *changes])[0] for seconds in (5.0, 8.0)
    )
    for at_s in np.arange(0.0, 5.0, 0.0937):
        assert track_state(short, round(at_s * S)) == track_state(long, round(at_s * S))


@compiled_only
def test_a_vehicle_stands_on_what_is_put_under_it_and_falls_when_it_is_removed():
    spec = VehicleRigSpec(position_m=(0.0, 0.0, 0.02), waypoint=(FlightWaypointSpec(time_s=0.0, position_m=(0.0, 0.0, -2.0)),))
    floor = SceneObject(mesh=plane((100.0, 100.0), DEFAULTS["grass"]))
    raised = SceneObject(mesh=plane((100.0, 100.0), DEFAULTS["grass"]), placement=Pose(position_m=(0.0, 0.0, 0.5)))
    built = build_loop_setup(spec, profile("iris"), open_line("hold"), seed=1, rate_hz=250)
    lifted = TimedChange(S, Kind.PLACE, placed_motion(built.context.multirotor, (0.0, 0.0, 0.6), (0.0, 0.0, 0.0)))
    changes = [TimedChange(S, Kind.WORLD, build_world([floor, raised])), lifted, TimedChange(3 * S, Kind.WORLD, build_world([floor]))]
    track = flown_track(built, build_world([floor]), 5 * S, changes)
    low, high, again = (place(track, time_s)[2] for time_s in (0.9, 2.9, 4.9))
    assert high - low == pytest.approx(0.5, abs=0.02)
    assert again == pytest.approx(low, abs=0.02)
