"""The loop that flies, as a controller sees it. What is counted is frames and the vehicle's own time; a wall clock only ends what never comes."""

import contextlib
import os

import numpy as np
import pytest
from pymavlink.dialects.v20 import common

from hilsim.compilation.atomics import publish
from hilsim.parts.vehicle.autopilot.loop_context import ControlWord, FlightWord
from hilsim.parts.vehicle.autopilot.send_queue import OutboxCount
from hilsim.parts.vehicle.autopilot.session import Reason, SessionState, SessionWord
from hilsim.parts.vehicle.autopilot.vehicle_sensors import BAROMETER_FIELDS, IMU_FIELDS, MAGNETOMETER_FIELDS, PITOT_FIELDS, RESET_FIELD
from hilsim.transmit.packet_queue import put, take, waiting
from hilsim_flight_controller.wire import Writer
from tests.compiled import compiled_only
from tests.flight import ARMED, HIL, UTC_EPOCH_NS, FlyingLoop, vehicle_spec
from tests.mavlink import mixture, packer, unknown_bytes

pytestmark = compiled_only
S, MS = 1_000_000_000, 1_000_000
ALL_FIELDS = IMU_FIELDS | MAGNETOMETER_FIELDS | BAROMETER_FIELDS | PITOT_FIELDS


@pytest.fixture
def flying():
    made = []

    def make(kind="serial", **controller):
        made.append(FlyingLoop(vehicle_spec(kind, **controller)).begin())
        return made[-1]

    yield make
    for each in made:
        each.end()


def test_a_loop_that_is_stopped_before_it_begins_does_nothing(flying):
    flying()  # compiled
    loop = FlyingLoop(vehicle_spec())
    loop.shared.control[ControlWord.ENDS] = 1
    loop.thread.start()
    loop.end()
    assert loop.physics_ns == 0
    assert not loop.shared.counts.any()


def test_heartbeats_go_alone_until_the_controller_has_sent_its_own(flying):
    loop = flying()
    loop.plug()
    loop.await_that(lambda: len(loop.messages("HEARTBEAT")) >= 2)
    assert {frame.identity for frame in loop.frames} == {0}
    first = loop.messages("HEARTBEAT")[0]
    assert (first.type, first.autopilot, first.base_mode, first.get_srcSystem(), first.get_srcComponent()) == (0, 8, HIL, 1, 200)
    assert loop.frames[0].payload_size == 9
    assert loop.state == SessionState.CALLING
    loop.beat()
    loop.await_messages("HIL_SENSOR", 3)
    assert loop.state == SessionState.FLYING


def test_the_first_heartbeat_is_not_waited_for(flying):
    loop = flying()
    loop.plug()
    loop.await_that(lambda: loop.frames)
    assert loop.frames[0].identity == 0


def test_a_companions_heartbeat_is_not_the_controllers(flying):
    loop = flying()
    loop.plug()
    loop.beat(autopilot=common.MAV_AUTOPILOT_INVALID)
    loop.await_that(lambda: loop.count("RECEIVED_FRAMES") == 1)
    assert loop.state == SessionState.CALLING


def vibration(writer):
    """A frame that says nothing of its sender but that it speaks."""
    return writer.pack(common.MAVLink_vibration_message(1, 0.5, 0.5, 0.5, 0, 0, 0))


def asked(loop):
    return [frame for frame in loop.frames if frame.identity == common.MAVLINK_MSG_ID_COMMAND_LONG]


def test_a_controller_that_speaks_without_a_heartbeat_is_asked_for_one_in_the_bytes_of_pymavlink_and_not_with_every_frame(flying):
    loop = flying()
    loop.plug()
    loop.await_that(lambda: loop.messages("HEARTBEAT"))  # before each, what waits for a controller that is called is thrown away
    loop.far.sendall(b"".join(vibration(Writer(9, 1)) for _ in range(20)))
    loop.await_that(lambda: asked(loop))
    loop.await_messages("HEARTBEAT", 1)
    assert loop.count("RECEIVED_FRAMES") == 20
    assert asked(loop) == []  # one answers all that came at once
    loop.far.sendall(vibration(Writer(9, 1)))
    loop.await_that(lambda: asked(loop))
    [frame] = asked(loop)
    request = common.MAVLink_command_long_message(9, 1, common.MAV_CMD_REQUEST_MESSAGE, 0, *[0.0] * 7)
    theirs = packer(1, 200)
    theirs.seq = frame.sequence
    assert frame.raw == request.pack(theirs)
    assert loop.state == SessionState.CALLING
    assert loop.count("SENSOR_FRAMES") == 0
    loop.beat()
    loop.await_messages("HIL_SENSOR", 3)
    loop.far.sendall(vibration(Writer(9, 1)))
    loop.await_messages("HIL_GPS", 5)
    assert asked(loop) == []


def test_an_echo_of_our_own_frames_and_a_companions_heartbeat_are_not_asked(flying):
    loop = flying()
    loop.plug()
    loop.await_that(lambda: loop.messages("HEARTBEAT"))
    loop.far.sendall(vibration(Writer(1, 200)))
    loop.beat(autopilot=common.MAV_AUTOPILOT_INVALID)
    loop.await_that(lambda: loop.count("RECEIVED_FRAMES") == 2)
    loop.await_that(lambda: len(loop.messages("HEARTBEAT")) >= 2)
    assert asked(loop) == []


def test_without_the_flag_no_sensor_goes_and_the_vehicle_stands_still(flying):
    loop = flying()
    loop.plug()
    loop.beat(mode=0)
    loop.await_that(lambda: loop.state == SessionState.REFUSED)
    loop.await_messages("HEARTBEAT", 2)
    assert {frame.identity for frame in loop.frames} == {0}
    assert (loop.physics_ns, loop.count("SENSOR_FRAMES")) == (0, 0)


@pytest.mark.parametrize(
    ("rate_hz", "magnetometer_every", "barometer_every"), [(250, 3, 5), pytest.param(100, 1, 2, marks=pytest.mark.extended), (500, 5, 10)]
)
def test_each_sensor_has_its_own_share_of_the_frames_and_their_stamps_are_a_period_apart(flying, rate_hz, magnetometer_every, barometer_every):
    loop = flying(rate_hz=rate_hz)
    loop.fly()
    frames = loop.await_messages("HIL_SENSOR", 300)
    updated = np.array([frame.fields_updated for frame in frames]) & ~RESET_FIELD
    assert np.median(np.diff([frame.time_usec for frame in frames])) == 1_000_000 // rate_hz  # one that the machine held up has a later stamp
    if loop.made.buffers.outbox.counts[OutboxCount.SAMPLES_REPLACED] == 0:
        for fields, every in ((MAGNETOMETER_FIELDS, magnetometer_every), (BAROMETER_FIELDS | PITOT_FIELDS, barometer_every)):
            assert set(np.diff(np.flatnonzero(updated & fields == fields))) == {every}
    assert set(np.unique(updated & IMU_FIELDS)) == {IMU_FIELDS}
    assert set(np.unique(updated & MAGNETOMETER_FIELDS)) <= {0, MAGNETOMETER_FIELDS}
    assert set(np.unique(updated & ~ALL_FIELDS)) == {0}


def test_positions_come_ten_times_a_second_by_utc_and_the_time_of_day_once(flying):
    loop = flying()
    loop.fly()
    positions = loop.await_messages("HIL_GPS", 25)
    steps = np.diff([fix.time_usec for fix in positions])
    assert np.median(steps) == pytest.approx(100_000, abs=10_000)
    assert all(fix.time_usec > UTC_EPOCH_NS // 1000 - 200_000 for fix in positions)
    assert len(loop.messages("SYSTEM_TIME")) in {2, 3}


def test_a_vehicle_at_rest_feels_gravity_upwards_and_its_motors_are_still(flying):
    loop = flying()
    loop.fly()
    frames = loop.await_messages("HIL_SENSOR", 100)[50:]
    assert np.mean([frame.zacc for frame in frames]) == pytest.approx(-9.80665, abs=0.05)
    assert np.mean([frame.xgyro for frame in frames]) == pytest.approx(0.0, abs=0.01)
    assert loop.made.flight.state.rotor_radps.tolist() == [0.0] * 4


def test_motors_turn_only_while_armed(flying):
    loop = flying()
    loop.fly()
    loop.steer(0.3, 0.3, 0.3, 0.3, mode=HIL)
    loop.await_that(lambda: loop.count("ACTUATOR_FRAMES") >= 1)
    loop.await_messages("HIL_SENSOR", 10)
    assert loop.made.flight.state.rotor_radps.tolist() == [0.0] * 4
    loop.steer(0.3, 0.3, 0.3, 0.3)
    loop.await_that(lambda: loop.made.flight.state.rotor_radps.min() > 50.0)
    assert loop.shared.session.word[SessionWord.ARMED] == 1


def test_motors_with_a_command_that_is_no_number_stop(flying):
    loop = flying()
    loop.fly()
    loop.steer(*[float("nan")] * 4)
    loop.await_that(lambda: loop.count("ACTUATOR_FRAMES") >= 1)
    loop.await_messages("HIL_SENSOR", 10)
    assert loop.made.flight.state.rotor_radps.tolist() == [0.0] * 4
    assert np.isfinite(loop.made.flight.state.motion).all()


def test_a_reboot_puts_the_vehicle_back_and_is_reported_in_one_frame(flying):
    loop = flying()
    loop.fly()
    start = loop.made.flight.start.copy()
    loop.steer(*[0.9] * 4, time_us=50_000_000)
    loop.await_that(lambda: loop.made.flight.state.motion[2] > start[2] + 1.0)
    loop.read()
    loop.frames.clear()
    loop.steer(*[0.0] * 4, mode=0, time_us=2_000_000)
    loop.await_that(lambda: loop.shared.session.word[SessionWord.REASON] == Reason.REBOOT)
    loop.await_that(lambda: any(message.fields_updated & RESET_FIELD for message in loop.messages("HIL_SENSOR")))
    loop.await_that(lambda: len(loop.messages("HIL_SENSOR")) >= 50)
    assert sum(bool(message.fields_updated & RESET_FIELD) for message in loop.messages("HIL_SENSOR")) == 1
    np.testing.assert_allclose(loop.made.flight.state.motion[:3], start[:3], atol=0.01)


def test_a_controller_that_reboots_with_its_cable_finds_the_vehicle_put_back(flying):
    loop = flying()
    loop.fly()
    start = loop.made.flight.start.copy()
    loop.steer(*[0.9] * 4, time_us=50_000_000)
    loop.await_that(lambda: loop.made.flight.state.motion[2] > start[2] + 1.0)
    loop.pull()
    loop.await_that(lambda: loop.shared.control[ControlWord.LINK] == -1)
    loop.near.close()
    loop.fly()
    assert loop.shared.session.word[SessionWord.REASON] == Reason.RESTART
    loop.steer(*[0.0] * 4, mode=0, time_us=2_000_000)
    loop.await_messages("HIL_SENSOR", 10)
    np.testing.assert_allclose(loop.made.flight.state.motion[:3], start[:3], atol=0.01)


def test_a_simulation_that_connects_anew_finds_its_vehicle_put_back(flying):
    loop = flying("tcp")
    loop.fly()
    height_m = loop.made.flight.state.motion[2]
    loop.steer(0.9, 0.9, 0.9, 0.9)
    loop.await_that(lambda: loop.made.flight.state.motion[2] > height_m + 0.5)
    loop.pull()
    loop.await_that(lambda: loop.state == SessionState.UNPLUGGED)
    assert loop.made.flight.state.motion[2] > height_m + 0.5
    loop.near.close()
    loop.fall_silent()  # the old command would make it rise again
    loop.fly()
    assert [message.fields_updated >> 31 for message in loop.await_messages("HIL_SENSOR", 20)].count(1) <= 1
    assert loop.made.flight.state.motion[2] == pytest.approx(height_m, abs=0.01)


def test_a_link_that_breaks_freezes_the_vehicle_where_it_is(flying):
    loop = flying()
    loop.fly()
    loop.steer(*[0.9] * 4)
    loop.await_that(lambda: loop.made.flight.state.motion[5] > 1.0)
    loop.pull()
    loop.await_that(lambda: loop.state == SessionState.UNPLUGGED)
    frozen, seen_ns = loop.made.flight.state.motion.copy(), loop.physics_ns
    written = int(loop.live.written[0])
    loop.await_that(lambda: loop.live.written[0] >= written + 50)
    assert loop.physics_ns - seen_ns <= 40 * MS  # what was due when it broke
    assert loop.made.flight.state.motion[2] == pytest.approx(frozen[2], abs=0.2)
    newest = loop.live.state[(int(loop.live.written[0]) - 1) % len(loop.live.time_ns)]
    assert newest[3:6].tolist() == [0.0] * 3
    assert (loop.count("LINK_LOSSES"), int(loop.shared.control[ControlWord.LINK])) == (1, -1)


def test_a_link_is_released_on_request(flying):
    loop = flying()
    loop.fly()
    publish(loop.shared.control, ControlWord.CLOSES, 1)
    loop.await_that(lambda: loop.shared.control[ControlWord.LINK] == -1)
    assert loop.state == SessionState.UNPLUGGED
    assert loop.shared.control[ControlWord.CLOSES] == 0


def test_silence_stops_sensors_and_motors_until_the_next_heartbeat(flying):
    loop = flying()
    loop.fly()
    loop.steer(*[0.5] * 4)
    loop.await_that(lambda: loop.shared.session.word[SessionWord.ARMED] == 1)
    loop.shared.session.word[SessionWord.HEARTBEAT_NS] -= 4 * S
    loop.await_that(lambda: loop.state == SessionState.CALLING)
    assert loop.shared.session.word[SessionWord.REASON] == Reason.SILENCE
    loop.await_messages("HEARTBEAT", 1)
    loop.await_messages("HEARTBEAT", 1)
    assert {frame.identity for frame in loop.frames} <= {0, common.MAVLINK_MSG_ID_COMMAND_LONG}  # it steers on, and is asked for its heartbeat
    loop.beat()
    loop.await_messages("HIL_SENSOR", 3)


def test_a_machine_that_stood_still_loses_the_time_and_sends_nothing_twice_as_fast(flying):
    loop = flying()
    loop.fly()
    loop.await_messages("HIL_SENSOR", 20)
    stalls = loop.count("STALLS")
    for _ in range(20):  # the loop may be writing this word at the same moment, or be past looking at it
        loop.read()
        loop.frames.clear()
        before_ns, skipped = loop.physics_ns, loop.count("SKIPPED_SENSORS")
        loop.made.flight.word[FlightWord.NEXT_STEP_NS] -= S  # as if the loop came a second late
        loop.await_that(lambda until=(skipped + 249, before_ns + 900 * MS): loop.count("SKIPPED_SENSORS") >= until[0] or loop.physics_ns > until[1])
        if loop.count("SKIPPED_SENSORS") - skipped >= 249:
            break
    loop.await_that(lambda: len(loop.messages("HIL_SENSOR")) >= 50)
    stamps = [message.time_usec for message in loop.messages("HIL_SENSOR")[:50]]
    assert loop.count("STALLS") > stalls
    assert stamps[-1] * 1000 - before_ns < 600 * MS  # 50 frames of physics, not the second
    assert np.median(np.diff(stamps)) == 4000
    assert len(stamps) == len(set(stamps))


def test_timesync_is_answered_with_the_requests_stamp(flying):
    loop = flying()
    loop.fly()
    loop.say(common.MAVLink_timesync_message(0, 123_456_789))
    loop.say(common.MAVLink_timesync_message(5, 99))  # an answer to another sender's
    loop.await_that(lambda: loop.messages("TIMESYNC"))
    (answer,) = loop.messages("TIMESYNC")
    assert answer.ts1 == 123_456_789
    assert answer.tc1 > 0
    loop.await_messages("HIL_SENSOR", 20)
    assert loop.messages("TIMESYNC") == []


def test_a_controller_in_lockstep_is_waited_for(flying):
    loop = flying("tcp", lockstep=True)
    loop.fly()
    loop.await_messages("HIL_SENSOR", 5)  # until its first answer it is not known to be in lockstep
    loop.steer(time_us=1, flags=1)
    loop.await_that(lambda: loop.shared.session.word[SessionWord.LOCKSTEP] == 1)
    for number in range(2, 30):
        loop.await_that(lambda: loop.made.flight.word[FlightWord.IS_AWAITED] == 1)
        made, physics_ns = loop.count("SENSOR_FRAMES"), loop.physics_ns
        if number % 10 == 0:
            loop.thread.join(0.03)  # a controller that is slow to answer
            assert (loop.count("SENSOR_FRAMES"), loop.physics_ns) == (made, physics_ns)
        loop.steer(time_us=number, flags=1)
        loop.await_that(lambda was=made: loop.count("SENSOR_FRAMES") > was)
        assert loop.count("SENSOR_FRAMES") - made == 1
        assert loop.physics_ns - physics_ns == 4 * MS
    assert loop.count("LOCKSTEP_TIMEOUTS") == 0
    assert loop.messages("HEARTBEAT") == []


def test_a_controller_in_lockstep_that_does_not_answer_is_waited_for_a_second(flying):
    loop = flying("tcp", lockstep=True)
    loop.fly()
    loop.steer(time_us=1, flags=1)
    loop.await_that(lambda: loop.shared.session.word[SessionWord.LOCKSTEP] == 1)
    loop.await_that(lambda: loop.made.flight.word[FlightWord.IS_AWAITED] == 1)
    made = loop.count("SENSOR_FRAMES")
    loop.made.flight.word[FlightWord.SENT_NS] -= 2 * S
    loop.await_that(lambda: loop.count("LOCKSTEP_TIMEOUTS") == 1)
    loop.await_that(lambda: loop.count("SENSOR_FRAMES") == made + 1)


@pytest.mark.parametrize("lockstep", [True, False])
def test_a_simulated_controller_whose_heartbeats_need_simulated_time_goes_on_after_it_stood_still_for_longer_than_any_timeout(flying, lockstep):
    loop = flying("tcp", lockstep=lockstep)
    loop.fly()
    loop.steer(time_us=1, flags=int(lockstep))
    word, flight = loop.shared.session.word, loop.made.flight
    loop.await_that(lambda: word[SessionWord.LOCKSTEP] == lockstep and flight.word[FlightWord.IS_AWAITED] == 1)
    loop.fall_silent()
    loop.await_that(lambda: loop.state == SessionState.SILENT)
    word[SessionWord.HEARTBEAT_NS] -= 10 * S
    loop.await_that(lambda: word[SessionWord.REASON] == Reason.SILENCE)
    motion = flight.state.motion.copy()
    for number in range(10):  # a frame a second for the stopped controller, of a vehicle held in place
        made = loop.count("SENSOR_FRAMES")
        flight.word[FlightWord.SENT_NS] -= 2 * S
        loop.await_that(lambda was=made: loop.count("SENSOR_FRAMES") == was + 1 and flight.word[FlightWord.IS_AWAITED] == 1)
        assert loop.count("LOCKSTEP_TIMEOUTS") == number + 1
    np.testing.assert_array_equal(flight.state.motion, motion)
    loop.read()
    for _ in range(11):  # it goes on, and answers all of them at once
        loop.steer(time_us=2, flags=int(lockstep))
    loop.await_that(lambda: loop.state == SessionState.FLYING)
    if not lockstep:
        loop.await_messages("HIL_SENSOR", 50)
        return
    for _ in range(20):
        made = loop.count("SENSOR_FRAMES")
        loop.await_that(lambda: flight.word[FlightWord.IS_AWAITED] == 1)
        assert loop.count("SENSOR_FRAMES") - made <= 1
        loop.steer(time_us=3, flags=1)
        loop.await_that(lambda was=made: loop.count("SENSOR_FRAMES") > was)
    assert loop.count("LOCKSTEP_TIMEOUTS") == 10


def test_bytes_of_the_controller_reach_the_ground_stations_packet_queue_unchanged(flying):
    loop = flying()
    loop.fly()
    take(loop.shared.to_stations, 100)
    for each in mixture():
        loop.far.sendall(each)
    loop.await_that(lambda: waiting(loop.shared.to_stations) == len(mixture()))
    taken = take(loop.shared.to_stations, 100)
    assert [taken.payload[row, :size].tobytes() for row, size in enumerate(taken.size.tolist())] == mixture()
    assert os.eventfd_read(int(loop.shared.wakes[1])) > 0


def test_a_log_that_fills_the_queue_to_ground_stations_leaves_room_for_other_frames(flying):
    loop = flying()
    loop.fly()
    queue = loop.shared.to_stations
    take(queue, 1 << 15)
    frame, room = np.zeros(8, np.uint8), queue.size.size - waiting(queue) - queue.size.size // 8
    for _ in range(room):
        assert put(queue, 0, 0, 0, frame, 8)
    loop.say(common.MAVLink_log_data_message(1, 0, 90, [7] * 90))
    loop.say(common.MAVLink_attitude_message(1, 0, 0, 0, 0, 0, 0))
    loop.await_that(lambda: waiting(queue) > room)
    assert (loop.count("UNFORWARDED_FRAMES"), take(queue, 1 << 15).flow[room]) == (1, common.MAVLINK_MSG_ID_ATTITUDE)


def test_noise_and_half_frames_are_counted_and_what_follows_is_heard(flying):
    loop = flying()
    loop.fly()
    heartbeat = loop.writer.pack(common.MAVLink_heartbeat_message(2, 12, HIL, 0, 4, 3))
    heard = loop.count("RECEIVED_FRAMES")
    loop.far.sendall(b"\x00\xff noise \xfd\x09\x00" + heartbeat[:10])
    loop.await_that(lambda: loop.made.buffers.stream.place[0] == loop.made.buffers.stream.place[1])
    loop.beat()
    loop.await_that(lambda: loop.count("RECEIVED_FRAMES") == heard + 1)
    assert loop.state == SessionState.FLYING


def test_frames_of_ground_stations_go_to_the_controller_but_not_those_from_before_the_link(flying):
    loop = flying()
    old = np.frombuffer(unknown_bytes(), np.uint8)
    put(loop.shared.to_controller, 0, 0, 0, old, old.size)
    loop.fly()
    for each in mixture():
        frame = np.frombuffer(each, np.uint8)
        while not put(loop.shared.to_controller, 0, 0, 0, frame, frame.size):
            loop.read()
    loop.await_that(lambda: loop.made.buffers.outbox.counts[OutboxCount.STATION_FRAMES] == len(mixture()))
    loop.await_messages("HIL_SENSOR", 2)
    assert loop.made.buffers.outbox.counts[OutboxCount.THROWN_AWAY] >= 1


def test_rangefinder_messages_are_sent_in_flight_and_not_before(flying):
    loop = flying()
    frame = np.frombuffer(unknown_bytes(), np.uint8)
    loop.plug()
    put(loop.shared.observations, 0, 0, 0, frame, frame.size)
    loop.await_that(lambda: waiting(loop.shared.observations) == 0)
    assert loop.count("OBSERVATIONS") == 0
    loop.beat()
    loop.await_that(lambda: loop.state == SessionState.FLYING)
    put(loop.shared.observations, 0, 0, 0, frame, frame.size)
    loop.await_that(lambda: any(each.raw == frame.tobytes() for each in loop.frames))
    assert loop.count("OBSERVATIONS") == 1


def test_the_next_frame_after_a_full_line_reports_what_was_held_back(flying):
    loop = flying()
    loop.plug(buffer_bytes=4608)
    loop.beat()
    loop.await_that(lambda: loop.state == SessionState.FLYING)
    replaced = loop.made.buffers.outbox.counts
    loop.steer()
    while replaced[OutboxCount.SAMPLES_REPLACED] < 30:  # no process reads
        loop.steer_on()
        with contextlib.suppress(TimeoutError):
            loop.thread.join(0.01)
    loop.await_that(
        lambda: len(loop.messages("HIL_SENSOR")) > 1 and np.diff([message.time_usec for message in loop.messages("HIL_SENSOR")]).max() > 60_000
    )
    sensors = loop.messages("HIL_SENSOR")
    after = int(np.argmax(np.diff([message.time_usec for message in sensors]))) + 1
    assert sensors[after].fields_updated & ALL_FIELDS == ALL_FIELDS


def test_inertial_readings_are_means_since_the_former_frame(flying):
    loop = flying()
    loop.fly()
    loop.steer(*[0.8] * 4, mode=ARMED)
    loop.await_that(lambda: loop.made.flight.state.motion[5] > 2.0)
    loop.await_messages("HIL_SENSOR", 1)
    assert loop.made.flight.imu_sums[6] <= 5.0


def in_the_air(loop):
    """Steered, and climbing."""
    loop.fly()
    loop.steer(*[0.9] * 4)
    loop.await_that(lambda: loop.made.flight.state.motion[5] > 1.0)


def test_a_controller_that_commands_no_motors_any_more_freezes_the_vehicle_and_its_sensors_though_its_port_is_open(flying):
    loop = flying()
    in_the_air(loop)
    loop.fall_silent()
    loop.await_that(lambda: loop.state == SessionState.SILENT)
    word, physics_ns, motion = loop.shared.session.word, loop.physics_ns, loop.made.flight.state.motion.copy()
    assert word[SessionWord.REASON] == Reason.NO_COMMANDS
    assert word[SessionWord.SILENCES] == 1
    assert word[SessionWord.ARMED] == 1  # as far as anybody knows
    loop.read()
    loop.frames.clear()
    written = int(loop.live.written[0])
    loop.await_that(lambda: loop.live.written[0] >= written + 100)
    assert loop.physics_ns == physics_ns
    np.testing.assert_array_equal(loop.made.flight.state.motion, motion)
    assert loop.messages("HIL_SENSOR") == []
    assert loop.messages("HIL_GPS") == []


def test_a_silent_controller_is_woken_by_sensors_of_a_held_vehicle_at_its_heartbeat_and_flies_on_at_its_first_command(flying):
    loop = flying()
    in_the_air(loop)
    loop.fall_silent()
    loop.await_that(lambda: loop.state == SessionState.SILENT)
    motion = loop.made.flight.state.motion.copy()
    loop.read()
    loop.frames.clear()
    loop.beat()
    loop.await_that(lambda: len(loop.messages("HIL_SENSOR")) >= 30)
    assert loop.state == SessionState.SILENT
    np.testing.assert_array_equal(loop.made.flight.state.motion, motion)
    imu_sums = np.array([(message.xacc, message.yacc, message.zacc) for message in loop.messages("HIL_SENSOR")[10:]])
    assert np.linalg.norm(imu_sums.mean(axis=0)) == pytest.approx(9.80665, abs=0.1)
    loop.steer(*[0.9] * 4)
    loop.await_that(lambda: loop.state == SessionState.FLYING)
    assert loop.shared.session.word[SessionWord.REASON] == Reason.COMMANDS
    loop.await_that(lambda: loop.made.flight.state.motion[2] > motion[2] + 0.2)


def test_sensors_to_a_controller_that_does_not_steer_yet_stop_when_its_heartbeats_do(flying):
    loop = flying()
    loop.fly()
    loop.await_that(lambda: len(loop.messages("HIL_SENSOR")) >= 10)
    loop.shared.session.word[SessionWord.HEARTBEAT_NS] -= 2 * S
    made = loop.count("SENSOR_FRAMES") + 1
    written = int(loop.live.written[0])
    loop.await_that(lambda: loop.live.written[0] >= written + 100)
    assert loop.count("SENSOR_FRAMES") <= made
    loop.beat()
    loop.await_that(lambda: loop.count("SENSOR_FRAMES") > made + 10)


def test_a_port_that_is_full_before_the_controller_steers_gets_no_more_sensors_until_its_next_heartbeat(flying):
    loop = flying()
    loop.plug(buffer_bytes=4608)
    loop.beat()
    loop.await_that(lambda: loop.state == SessionState.FLYING)
    word = loop.shared.session.word
    while word[SessionWord.UNANSWERED_NS] <= word[SessionWord.HEARTBEAT_NS]:  # no process reads
        with contextlib.suppress(TimeoutError):
            loop.thread.join(0.01)
    made, written = loop.count("SENSOR_FRAMES") + 1, int(loop.live.written[0])
    while loop.live.written[0] < written + 100:
        loop.thread.join(0.01)
    assert loop.count("SENSOR_FRAMES") <= made


def test_unsent_bytes_of_a_serial_port_are_discarded_when_its_controller_falls_silent(flying, cable):
    loop, port = flying(), cable()
    descriptor = os.open(port.device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    publish(loop.shared.control, ControlWord.LINK, descriptor)
    try:
        port.write(loop.writer.pack(common.MAVLink_heartbeat_message(2, 12, HIL, 0, 4, 3)))
        loop.await_that(lambda: loop.state == SessionState.FLYING)
        port.write(loop.writer.pack(common.MAVLink_hil_actuator_controls_message(1, [0.0] * 16, ARMED, 0)))
        loop.await_that(lambda: loop.made.buffers.outbox.counts[OutboxCount.BYTES] > 9000 or loop.state == SessionState.SILENT)
        loop.await_that(lambda: loop.state == SessionState.SILENT)
        left = len(port.read())
        assert left <= 4095 + 300  # a pseudo-terminal keeps what its other end's line discipline has taken; a true port's queue is empty
    finally:
        publish(loop.shared.control, ControlWord.CLOSES, 1)
        loop.await_that(lambda: loop.shared.control[ControlWord.LINK] == -1)
        os.close(descriptor)


def lost(loop):
    """Its controller has been gone for so long that another may come."""
    loop.fall_silent()
    loop.await_that(lambda: loop.shared.session.word[SessionWord.IS_LOST] == 1)
    loop.read()
    loop.frames.clear()


def test_a_controller_that_falls_silent_and_speaks_again_is_asked_for_its_heartbeat(flying):
    loop = flying()
    in_the_air(loop)
    lost(loop)
    loop.far.sendall(vibration(Writer(1, 1)))
    loop.await_that(lambda: asked(loop))
    assert loop.messages("HIL_SENSOR") == []
    loop.beat(mode=HIL | ARMED)
    loop.await_that(lambda: len(loop.messages("HIL_SENSOR")) >= 3)


@pytest.mark.parametrize("first", ["heartbeat", "command"])
def test_a_controller_that_is_lost_in_the_air_and_comes_back_disarmed_finds_its_vehicle_back_where_it_began_by_a_clock_that_goes_on(flying, first):
    loop = flying()
    in_the_air(loop)
    start = loop.made.flight.start.copy()
    lost(loop)
    assert loop.made.flight.state.motion[2] > start[2] + 0.1
    if first == "heartbeat":
        loop.beat()
    else:
        loop.steer(*[0.0] * 4, mode=0, time_us=9_000_000)
    loop.await_that(lambda: loop.shared.session.word[SessionWord.REASON] == Reason.RESTART)
    loop.await_that(lambda: len(loop.messages("HIL_SENSOR")) >= 20)
    assert sum(bool(message.fields_updated & RESET_FIELD) for message in loop.messages("HIL_SENSOR")) == 1
    loop.steer(*[0.0] * 4, mode=0, time_us=9_500_000)
    loop.await_messages("HIL_SENSOR", 50)
    np.testing.assert_allclose(loop.made.flight.state.motion[:3], start[:3], atol=0.01)
    assert loop.made.flight.state.crashed[0] == 0


def test_a_controller_that_is_lost_in_the_air_and_comes_back_armed_flies_on(flying):
    loop = flying()
    in_the_air(loop)
    lost(loop)
    height_m = loop.made.flight.state.motion[2]
    loop.beat(mode=HIL | ARMED)
    loop.steer(*[0.9] * 4, time_us=9_000_000)
    loop.await_that(lambda: loop.made.flight.state.motion[2] > height_m + 0.2)
    assert loop.shared.session.word[SessionWord.REASON] == Reason.COMMANDS


@pytest.mark.parametrize("damage", ["", "crashed", "broken"])
def test_a_vehicle_that_landed_stays_where_it_landed_when_its_controller_comes_back_and_one_that_has_crashed_is_whole_again_where_it_began(
    flying, damage
):
    loop = flying()
    loop.fly()
    loop.steer(*[0.0] * 4, mode=0 if damage else ARMED)
    loop.await_that(lambda: loop.made.flight.state.impulse_ns[:4, 2].any() and loop.shared.session.word[SessionWord.IS_STEERED] == 1)
    lost(loop)
    loop.made.flight.state.motion[0] += 7.0
    if damage:
        getattr(loop.made.flight.state, damage)[0] = 1
    loop.beat()
    loop.await_that(lambda: len(loop.messages("HIL_SENSOR")) >= 10)
    assert loop.made.flight.state.motion[0] == pytest.approx(loop.made.flight.start[0] + (0.0 if damage else 7.0), abs=0.01)
    assert (loop.made.flight.state.crashed[0], loop.made.flight.state.broken.any()) == (0, False)
