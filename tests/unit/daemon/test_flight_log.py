"""Events of a vehicle: each change once."""

import pytest
from structlog.testing import capture_logs

from hilsim.parts.vehicle.autopilot.loop_setup import build_loop_setup, open_line
from hilsim.parts.vehicle.autopilot.session import Reason, SessionState, SessionWord
from hilsim.parts.vehicle.flying import FlyingVehicle
from hilsim.parts.vehicle.log import FlightLog
from hilsim.parts.vehicle.physics.touching import Touching, TouchWord
from hilsim.transmit.scheduling import ThreadSettings
from hilsim.world.platforms.live import build_live_pose
from hilsim.world.scene.world import build_world
from tests.flight import vehicle_spec
from tests.unit.vehicle.vehicles import BARE


@pytest.fixture
def vehicle():
    return FlyingVehicle(
        spec=vehicle_spec(), profile=BARE, seed=1, world=build_world([]), live=build_live_pose(), settings=ThreadSettings(scheduling="plain")
    )


def said(log):
    with capture_logs() as rows:
        log.look()
    return rows


def enter(vehicle, state, reason):
    word = vehicle.loop_setup.shared.session.word
    word[SessionWord.STATE], word[SessionWord.REASON] = state, reason
    word[SessionWord.CHANGES] += 1


def test_nothing_that_has_not_changed_is_reported(vehicle):
    log = FlightLog(vehicle)
    assert said(log) == []
    assert build_loop_setup(vehicle.spec, BARE, open_line("serial"), seed=1, rate_hz=250).shared.touch.word[TouchWord.COUNT] == 0


def test_a_controller_that_falls_silent_is_reported_with_its_reason_and_again_when_it_is_back(vehicle):
    log = FlightLog(vehicle)
    enter(vehicle, SessionState.FLYING, Reason.HEARTBEAT)
    said(log)
    enter(vehicle, SessionState.SILENT, Reason.NO_COMMANDS)
    vehicle.loop_setup.shared.session.word[SessionWord.SILENCES] = 1
    changed, silent = said(log)
    assert (changed["event"], changed["state"], changed["log_level"]) == ("session.changed", "silent", "warning")
    assert changed["reason"].startswith("no motor command of the controller for 0.2 s")
    assert (silent["event"], silent["silent_s"], silent["silences"]) == ("flight.controller_silent", 0.2, 1)
    assert said(log) == []
    enter(vehicle, SessionState.FLYING, Reason.COMMANDS)
    assert [row["event"] for row in said(log)] == ["session.changed", "flight.controller_back"]


def test_a_contact_is_reported_when_it_begins_with_its_speed_and_kind_and_when_it_ends_with_how_long_it_lasted(vehicle):
    log, touch = FlightLog(vehicle), vehicle.loop_setup.shared.touch
    touch.word[:4] = (1, Touching.OBSTACLE | Touching.MOVING, 5_000_000_000, 5_000_000_000)
    touch.closing_mps[:] = 6.0, 4.5
    [began] = said(log)
    assert (began["event"], began["kinds"], began["closing_mps"], began["contacts"]) == ("vehicle.contact_began", "obstacle, moving", 4.5, 1)
    touch.word[3] = 6_500_000_000
    assert said(log) == []
    touch.word[1] = 0
    [ended] = said(log)
    assert (ended["event"], ended["duration_s"], ended["fastest_mps"]) == ("vehicle.contact_ended", 1.5, 6.0)
    assert said(log) == []


def test_a_crashed_vehicle_that_is_armed_is_reported_each_time_with_what_to_do(vehicle):
    log, word, crashed = FlightLog(vehicle), vehicle.loop_setup.shared.session.word, vehicle.loop_setup.flight.state.crashed
    word[SessionWord.ARMED] = crashed[0] = 1
    assert [row["event"] for row in said(log)] == ["vehicle.armed", "vehicle.crashed"]
    for _ in range(2):
        word[SessionWord.ARMED] = 0
        assert [row["event"] for row in said(log)] == ["vehicle.disarmed"]
        word[SessionWord.ARMED] = 1
        armed, vain = said(log)
        assert (armed["event"], vain["event"], vain["log_level"]) == ("vehicle.armed", "vehicle.armed_in_vain", "warning")
        assert "restart the flight controller" in vain["advice"]
        assert said(log) == []
    word[SessionWord.ARMED] = crashed[0] = 0
    said(log)
    word[SessionWord.ARMED] = 1
    assert [row["event"] for row in said(log)] == ["vehicle.armed"]


def test_ready_to_arm_is_reported_once_with_flags_and_the_last_warning_and_that_it_no_longer_is(vehicle):
    log, autopilot = FlightLog(vehicle), vehicle.autopilot
    autopilot.estimator_flags, autopilot.warning = 0x37F, "Preflight Fail: GPS Vertical Pos Drift too high"
    assert said(log) == []
    autopilot.has_home = True
    [ready] = said(log)
    assert (ready["event"], ready["estimator_flags"], ready["last_warning"]) == ("flight.ready_to_arm", "0x37f", autopilot.warning)
    assert said(log) == []
    autopilot.estimator_flags = 0x347
    [not_ready] = said(log)
    assert (not_ready["event"], not_ready["reason"]) == ("flight.not_ready_to_arm", "the estimator has no position, height")


@pytest.mark.parametrize("armed", [1, 0])
def test_ready_to_arm_is_logged_only_when_disarmed_and_free_of_contact_and_estimator_faults_meanwhile_have_their_own_name(vehicle, armed):
    log, autopilot, shared = FlightLog(vehicle), vehicle.autopilot, vehicle.loop_setup.shared
    shared.session.word[SessionWord.ARMED], shared.touch.word[TouchWord.KINDS] = armed, 0 if armed else Touching.OBSTACLE
    autopilot.has_home, autopilot.estimator_flags = True, 0x37F
    assert [row["event"] for row in said(log)] == (["vehicle.armed"] if armed else [])
    shared.session.word[SessionWord.ARMED] = shared.touch.word[TouchWord.KINDS] = 0
    assert [row["event"] for row in said(log)] == [*(["vehicle.disarmed"] if armed else []), "flight.ready_to_arm"]
    shared.session.word[SessionWord.ARMED], shared.touch.word[TouchWord.KINDS] = armed, 0 if armed else Touching.OBSTACLE
    autopilot.estimator_flags = 0x347
    [fault] = [row for row in said(log) if row["event"] != "vehicle.armed"]
    assert (fault["event"], fault["reason"]) == ("flight.estimator_fault", "the estimator has no position, height")


def test_a_crash_is_reported_with_its_cause(vehicle):
    log, state = FlightLog(vehicle), vehicle.loop_setup.flight.state
    state.crashed[0] = 1
    assert [(row["event"], row["reason"]) for row in said(log)] == [("vehicle.crashed", "an impact faster than crash_mps")]
    state.crashed[0] = 0
    said(log)
    state.broken[1:3] = 1
    assert [(row["event"], row["reason"]) for row in said(log)] == [("vehicle.crashed", "blades of 2 of 4 rotors struck an obstacle")]


def test_a_crashed_vehicle_is_not_ready_to_arm(vehicle):
    log, autopilot, crashed = FlightLog(vehicle), vehicle.autopilot, vehicle.loop_setup.flight.state.crashed
    crashed[0] = 1
    autopilot.has_home, autopilot.estimator_flags = True, 0x37F
    assert [row["event"] for row in said(log)] == ["vehicle.crashed"]
    crashed[0] = 0
    assert [row["event"] for row in said(log)] == ["flight.ready_to_arm"]


def test_a_falling_vehicle_is_not_ready_to_arm(vehicle):
    log, autopilot, motion = FlightLog(vehicle), vehicle.autopilot, vehicle.loop_setup.flight.state.motion
    motion[5] = -43.0
    autopilot.has_home, autopilot.estimator_flags = True, 0x37F
    assert said(log) == []
    assert (vehicle.reading().is_ready, vehicle.reading().obstacle) == (False, "the vehicle falls")
    motion[5] = 0.0
    assert vehicle.reading().is_ready
    assert [row["event"] for row in said(log)] == ["flight.ready_to_arm"]


def test_a_lost_link_clears_the_autopilots_reports(vehicle):
    log = FlightLog(vehicle)
    vehicle.autopilot.estimator_flags = 0x37F
    enter(vehicle, SessionState.UNPLUGGED, Reason.LINK_LOST)
    said(log)
    assert vehicle.autopilot.estimator_flags is None
