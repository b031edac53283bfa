"""What a session makes of heartbeats, motor commands and silence."""

import numpy as np
import pytest

from hilsim.parts.vehicle.autopilot.session import (
    COMMAND_SILENT_NS,
    LOST_NS,
    MAX_CONTROLS,
    REASONS,
    SILENT_NS,
    WAKING_NS,
    Reason,
    SessionState,
    SessionWord,
    actuators_came,
    allocate_session,
    heartbeat_came,
    is_back_disarmed,
    is_free,
    lacks_heartbeat,
    link_changed,
    port_is_full,
    restarted,
    stood_still,
    time_passed,
    wants_sensors,
)
from hilsim.protocols.mavlink.messages import ARMED_FLAG, HIL_FLAG

S = 1_000_000_000
START = 7 * S
HALF = np.full(MAX_CONTROLS, 0.5, np.float32)


def at(session):
    word = session.word
    return SessionState(int(word[SessionWord.STATE])), Reason(int(word[SessionWord.REASON])), int(word[SessionWord.CHANGES])


def flying():
    session = allocate_session()
    link_changed(session, True)  # noqa: FBT003 - a kernel's argument
    heartbeat_came(session, 1, 1, HIL_FLAG, START)
    return session


def steer(session, controls=HALF, *, mode=ARMED_FLAG, time_us=10_000_000, flags=0, now_ns=START):
    return bool(actuators_came(session, np.asarray(controls, np.float32), mode, time_us, flags, now_ns))


def pass_until(session, now_ns, *, is_simulator=False):
    time_passed(session, is_simulator, now_ns)


def test_a_session_begins_unplugged_and_every_reason_has_its_words():
    session = allocate_session()
    assert at(session) == (SessionState.UNPLUGGED, Reason.STARTED, 0)
    assert set(REASONS) == set(Reason)


def test_a_link_that_opens_is_called_over_until_a_heartbeat_with_the_flag_comes():
    session = allocate_session()
    link_changed(session, True)  # noqa: FBT003 - as above
    assert at(session) == (SessionState.CALLING, Reason.LINK_OPENED, 1)
    heartbeat_came(session, 3, 5, HIL_FLAG | 1, START)
    assert at(session) == (SessionState.FLYING, Reason.HEARTBEAT, 2)
    assert session.word[[SessionWord.SYSTEM, SessionWord.COMPONENT, SessionWord.BASE_MODE]].tolist() == [3, 5, HIL_FLAG | 1]
    assert session.word[SessionWord.HEARTBEAT_NS] == START


def test_a_second_heartbeat_changes_nothing():
    session = flying()
    heartbeat_came(session, 1, 1, HIL_FLAG, START + S)
    assert at(session) == (SessionState.FLYING, Reason.HEARTBEAT, 2)


@pytest.mark.parametrize("mode", [0, 0xFF & ~HIL_FLAG])
def test_a_heartbeat_without_the_flag_is_refused_also_in_flight_and_the_motors_stop(mode):
    session = flying()
    steer(session)
    heartbeat_came(session, 1, 1, mode, START + S)
    assert at(session)[:2] == (SessionState.REFUSED, Reason.NO_HIL_FLAG)
    assert session.control.tolist() == [0.0] * MAX_CONTROLS
    assert session.word[SessionWord.ARMED] == 0
    heartbeat_came(session, 1, 1, HIL_FLAG, START + 2 * S)
    assert at(session)[0] == SessionState.FLYING


def test_a_refused_controller_stays_refused_without_counting_every_heartbeat():
    session = flying()
    for second in range(5):
        heartbeat_came(session, 1, 1, 0, START + second * S)
    assert at(session) == (SessionState.REFUSED, Reason.NO_HIL_FLAG, 3)


def test_a_lost_link_leaves_no_controller_in_charge():
    session = flying()
    steer(session)
    link_changed(session, False)  # noqa: FBT003 - as above
    assert at(session)[:2] == (SessionState.UNPLUGGED, Reason.LINK_LOST)
    assert session.control.tolist() == [0.0] * MAX_CONTROLS
    assert session.word[SessionWord.ARMED] == 0


def test_silence_is_noticed_after_three_seconds_and_not_before():
    session = flying()
    pass_until(session, START + SILENT_NS)
    assert at(session)[0] == SessionState.FLYING
    pass_until(session, START + SILENT_NS + 1)
    assert at(session)[:2] == (SessionState.CALLING, Reason.SILENCE)
    assert session.control.tolist() == [0.0] * MAX_CONTROLS
    pass_until(session, START + 10 * SILENT_NS)
    assert at(session)[2] == 3


@pytest.mark.parametrize("is_steered", [False, True])
def test_a_silent_simulator_gets_sensors_on_and_flies_on_at_its_first_command_because_its_heartbeats_need_them(is_steered):
    session = flying()
    if is_steered:
        steer(session)
        pass_until(session, START + SILENT_NS, is_simulator=True)
    for late_ns in (SILENT_NS + 1, 600 * S):
        pass_until(session, START + late_ns, is_simulator=True)
        assert at(session)[:2] == (SessionState.SILENT, Reason.SILENCE)
        assert wanted(session, START + late_ns, is_simulator=True)
        assert not is_free(session)
    steer(session, flags=1, now_ns=START + 601 * S)
    assert at(session)[:2] == (SessionState.FLYING, Reason.COMMANDS)
    assert is_free(session)


def test_motor_commands_that_stop_are_noticed_after_a_fifth_of_a_second_and_the_vehicle_is_not_free_until_they_come_again():
    session = flying()
    steer(session)
    pass_until(session, START + COMMAND_SILENT_NS)
    assert at(session)[0] == SessionState.FLYING
    assert is_free(session)
    now_ns = START + COMMAND_SILENT_NS + 1
    pass_until(session, now_ns)
    assert at(session)[:2] == (SessionState.SILENT, Reason.NO_COMMANDS)
    assert not is_free(session)
    assert session.word[SessionWord.ARMED] == 1
    steer(session, now_ns=now_ns)
    assert at(session)[:2] == (SessionState.FLYING, Reason.COMMANDS)
    assert is_free(session)


def test_while_hilsim_itself_stood_still_no_controller_is_silent():
    session = flying()
    steer(session)
    stood_still(session, COMMAND_SILENT_NS)
    stood_still(session, 5)
    pass_until(session, START + 2 * COMMAND_SILENT_NS + 5)
    assert at(session)[0] == SessionState.FLYING
    pass_until(session, START + 2 * COMMAND_SILENT_NS + 6)
    assert at(session)[:2] == (SessionState.SILENT, Reason.NO_COMMANDS)
    steer(session, now_ns=START + 3 * COMMAND_SILENT_NS)  # each command begins the measure anew
    pass_until(session, START + 4 * COMMAND_SILENT_NS)
    assert at(session)[0] == SessionState.FLYING
    pass_until(session, START + 4 * COMMAND_SILENT_NS + 1)
    assert at(session)[:2] == (SessionState.SILENT, Reason.NO_COMMANDS)


def wanted(session, now_ns, *, is_simulator=False):
    return bool(wants_sensors(session, is_simulator, now_ns))


def test_who_does_not_steer_gets_sensors_after_its_heartbeats_and_who_fell_silent_only_after_a_later_one():
    session = flying()
    assert wanted(session, START + WAKING_NS)
    assert not wanted(session, START + WAKING_NS + 1)
    assert wanted(session, START + WAKING_NS + 1, is_simulator=True)
    steer(session)
    silent_ns = START + COMMAND_SILENT_NS + 1
    pass_until(session, silent_ns)
    assert not wanted(session, silent_ns)
    heartbeat_came(session, 1, 1, HIL_FLAG, silent_ns + 1)
    assert at(session)[0] == SessionState.SILENT
    assert wanted(session, silent_ns + 1)
    port_is_full(session, silent_ns + 2)
    assert not wanted(session, silent_ns + 3)
    heartbeat_came(session, 1, 1, 0, silent_ns + 4)
    assert at(session)[0] == SessionState.REFUSED
    assert not wanted(session, silent_ns + 4)


def test_a_full_port_of_a_controller_that_steers_stops_no_sensors():
    session = flying()
    steer(session)
    port_is_full(session, START + 1)
    assert wanted(session, START + 2)


def test_a_vehicle_whose_controller_comes_back_is_held_until_it_steers_and_one_that_was_never_steered_is_free():
    session = flying()
    assert is_free(session)
    steer(session)
    pass_until(session, START + SILENT_NS + 1)
    assert at(session)[0] == SessionState.CALLING
    heartbeat_came(session, 1, 1, HIL_FLAG, START + 5 * S)
    assert at(session)[0] == SessionState.FLYING
    assert not is_free(session)
    assert wanted(session, START + 5 * S)
    steer(session, now_ns=START + 5 * S)
    assert is_free(session)


def test_who_was_refused_and_falls_silent_is_called_again_and_who_is_unplugged_is_not():
    session = allocate_session()
    pass_until(session, START + 10 * SILENT_NS)
    assert at(session) == (SessionState.UNPLUGGED, Reason.STARTED, 0)
    heartbeat_came(session, 1, 1, 0, START)
    pass_until(session, START + SILENT_NS + 1)
    assert at(session)[:2] == (SessionState.CALLING, Reason.SILENCE)


def test_motors_get_values_between_0_and_1_and_0_for_what_is_no_number():
    session = flying()
    controls = np.zeros(MAX_CONTROLS)
    controls[:8] = [0.25, 1.0, 1.5, np.inf, -0.1, -np.inf, np.nan, 1e-3]
    steer(session, controls)
    assert session.control[:8].tolist() == [0.25, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, float(np.float32(1e-3))]
    assert session.word[SessionWord.ARMED] == 1


def test_motors_stand_still_unless_armed():
    session = flying()
    steer(session)
    steer(session, mode=0xFF & ~ARMED_FLAG)
    assert session.control.tolist() == [0.0] * MAX_CONTROLS
    assert session.word[SessionWord.ARMED] == 0


@pytest.mark.parametrize("state", ["unplugged", "calling", "refused"])
def test_motors_stand_still_unless_the_session_flies(state):
    session = allocate_session()
    if state != "unplugged":
        link_changed(session, True)  # noqa: FBT003 - as above
    if state == "refused":
        heartbeat_came(session, 1, 1, 0, START)
    steer(session)
    assert session.control.tolist() == [0.0] * MAX_CONTROLS
    assert session.word[SessionWord.ARMED] == 0


def test_a_clock_that_goes_back_by_more_than_a_second_is_a_reboot():
    session = flying()
    assert not steer(session, time_us=50_000_000)
    assert not steer(session, time_us=49_000_000)
    assert session.word[SessionWord.RESET] == 0
    assert steer(session, time_us=47_999_999)
    assert session.word[SessionWord.RESET] == 1
    assert at(session) == (SessionState.FLYING, Reason.REBOOT, 3)
    assert not steer(session, time_us=48_000_000)


def test_the_first_command_ever_is_no_reboot():
    assert not steer(flying(), time_us=0)


def test_a_board_that_reboots_takes_its_link_with_it_and_is_found_out_over_the_new_one():
    session = flying()
    steer(session, time_us=50_000_000)
    link_changed(session, False)  # noqa: FBT003 - as above
    session.word[SessionWord.ACTUATOR_NS] = 0  # as the loop does when a link is opened
    link_changed(session, True)  # noqa: FBT003 - as above
    heartbeat_came(session, 1, 1, HIL_FLAG, START + S)
    assert steer(session, time_us=3_000_000, now_ns=START + S)


def test_a_command_says_when_it_came_and_whether_it_answered_a_sensor_frame():
    session = flying()
    steer(session, time_us=12, flags=1, now_ns=START + 5)
    names = [SessionWord.ACTUATOR_NS, SessionWord.ACTUATOR_US, SessionWord.LOCKSTEP]
    assert session.word[names].tolist() == [START + 5, 12, 1]
    steer(session, time_us=13, flags=0b1110, now_ns=START + 6)
    assert session.word[SessionWord.LOCKSTEP] == 0


def back_disarmed(session, mode=0):
    return bool(is_back_disarmed(session, mode))


@pytest.mark.parametrize("lost", ["silent", "called", "unplugged"])
def test_who_was_lost_and_comes_back_disarmed_has_started_anew_and_who_comes_back_armed_has_not(lost):
    for mode in (0, ARMED_FLAG):
        session = flying()
        steer(session)
        assert not back_disarmed(session)
        if lost == "unplugged":
            link_changed(session, False)  # noqa: FBT003 - as above
        else:
            pass_until(session, START + COMMAND_SILENT_NS + 1)
            pass_until(session, START + LOST_NS)
            assert not back_disarmed(session)
            pass_until(session, START + (LOST_NS if lost == "silent" else SILENT_NS) + 1)
        assert back_disarmed(session, HIL_FLAG | mode) == (mode == 0)
        assert not back_disarmed(session)  # it is asked of the first alone


def test_a_vehicle_that_was_put_back_is_free_until_its_controller_steers_and_a_clock_that_began_anew_says_nothing_new():
    session = flying()
    steer(session, time_us=50_000_000)
    assert session.word[SessionWord.WAS_ARMED] == 1
    pass_until(session, START + SILENT_NS + 1)
    heartbeat_came(session, 1, 1, HIL_FLAG, START + 5 * S)
    restarted(session)
    assert at(session)[:2] == (SessionState.FLYING, Reason.RESTART)
    assert is_free(session)
    assert session.word[[SessionWord.WAS_ARMED, SessionWord.RESET]].tolist() == [0, 1]
    assert not steer(session, mode=0, time_us=2_000_000, now_ns=START + 5 * S)


def test_who_starts_anew_before_it_was_called_flies_at_once_with_motors_that_stand_still():
    session = flying()
    steer(session)
    pass_until(session, START + COMMAND_SILENT_NS + 1)
    heartbeat_came(session, 1, 1, HIL_FLAG, START + S)
    restarted(session)
    assert at(session)[:2] == (SessionState.FLYING, Reason.RESTART)
    assert is_free(session)
    assert session.word[SessionWord.ARMED] == 0
    assert session.control.tolist() == [0.0] * MAX_CONTROLS


def test_faults_for_missing_heartbeats_last_until_a_heartbeat_arrives():
    session = allocate_session()
    assert not lacks_heartbeat(session)
    link_changed(session, True)  # noqa: FBT003 - as above
    assert lacks_heartbeat(session)
    heartbeat_came(session, 1, 1, HIL_FLAG, START)
    assert not lacks_heartbeat(session)
    steer(session)
    pass_until(session, START + COMMAND_SILENT_NS + 1)
    assert lacks_heartbeat(session)
    heartbeat_came(session, 1, 1, HIL_FLAG, START + COMMAND_SILENT_NS + 2)
    assert not lacks_heartbeat(session)
    heartbeat_came(session, 1, 1, 0, START + S)
    assert not lacks_heartbeat(session)
