"""Asking a controller about itself, in virtual time: the scripted controller answers, and judges what it is sent."""

import itertools

import numpy as np
import pytest
from pymavlink.dialects.v20 import common

from hilsim.parts.vehicle.diagnosis.probe import PARAMETERS, Probe, ProbeSpec
from hilsim.parts.vehicle.diagnosis.probe_result import Beat, Text
from hilsim_flight_controller.controller import Px4, Px4Spec
from hilsim_flight_controller.telemetry import PARAMETERS as THEIRS
from hilsim_flight_controller.wire import Splitter
from tests.mavlink import heartbeat_bytes, packer

STEP_NS = 5_000_000


def conversation(probe, controller=None, *, loses=lambda _count: False):
    """Until the inquiry is over; returns what was heard and the frames that were sent, with their times."""
    sent, splitter, numbers, now_ns = [], Splitter(), itertools.count(), 0
    while not probe.is_over(now_ns):
        data = probe.advance(now_ns)
        sent += [(now_ns, frame.message()) for frame in splitter.feed(data)]
        if controller is not None:
            controller.receive(now_ns // 1000, b"" if data and loses(next(numbers)) else data)
            probe.receive(controller.advance(now_ns // 1000), now_ns)
        now_ns += STEP_NS
    return probe.result(now_ns), sent


def names(sent):
    return [message.get_type() for _, message in sent]


def told(*frames, spec=None):
    """What an inquiry makes of frames."""
    probe = Probe(spec or ProbeSpec())
    for frame in (heartbeat_bytes(packer(1, 1)), *frames):
        probe._asked["X"] = None
        probe.receive(bytes(frame), 0)
    return probe.result(1_000_000_000)


def parameter_bytes(value, kind, name="X", system=1):
    raw = np.zeros(4, np.uint8)
    raw[: np.dtype(value).itemsize] = np.frombuffer(value.tobytes(), np.uint8)
    return common.MAVLink_param_value_message(name.encode(), raw.view("<f4")[0].item(), kind, 1, 0).pack(packer(system, 1))


def test_everything_of_a_controller_in_the_loop_is_heard():
    heard, sent = conversation(Probe(ProbeSpec(listen_s=4.0)), Px4(Px4Spec()))
    assert heard.beat == Beat(system=1, component=1, vehicle_type=2, autopilot=12, base_mode=113)
    assert (heard.beat.has_hil, heard.beat.is_armed, heard.skipped_bytes) == (True, False, 0)
    assert heard.parameters == {name: value for name, value in THEIRS.items() if name in PARAMETERS}
    assert heard.asked == PARAMETERS
    assert heard.rate_hz(common.MAVLINK_MSG_ID_HIL_ACTUATOR_CONTROLS) == pytest.approx(50.0, rel=0.05)
    assert heard.rate_hz(common.MAVLINK_MSG_ID_TIMESYNC) == pytest.approx(10.0, rel=0.1)
    assert heard.rate_hz(54_321) == pytest.approx(2.0, rel=0.3)
    assert common.MAVLINK_MSG_ID_PARAM_VALUE not in {stream.id for stream in heard.streams}  # answers are no stream
    assert heard.health.enabled == 0x2F
    assert heard.streamed_bytes_per_s == pytest.approx(5000, rel=0.1)
    assert set(names(sent)) == {"HEARTBEAT", "PARAM_REQUEST_READ"}


def test_only_heartbeats_go_out_until_the_controller_is_heard():
    heard, sent = conversation(Probe(ProbeSpec(wait_s=8.0, listen_s=2.0)), Px4(Px4Spec(boot_us=3_500_000)))
    first = names(sent).index("PARAM_REQUEST_READ")
    assert names(sent)[:first] == ["HEARTBEAT"] * 4
    assert [now_ns for now_ns, _ in sent[:first]] == [0, 10**9, 2 * 10**9, 3 * 10**9]
    assert 3.5 <= heard.waited_s < 3.7
    assert (sent[0][1].type, sent[0][1].autopilot, sent[0][1].mavlink_version) == (0, 8, 3)


def test_a_heartbeat_is_one_that_starts_mavlink_on_usb():
    beat = Probe(ProbeSpec()).advance(0)
    assert (len(beat), beat[1], beat[7:10]) == (21, 9, b"\0\0\0")


def test_silence_is_awaited_for_the_given_time():
    heard, sent = conversation(Probe(ProbeSpec(wait_s=2.5)))
    assert (heard.beat, heard.waited_s, heard.listened_s, heard.received_bytes) == (None, 2.5, 0.0, 0)
    assert names(sent) == ["HEARTBEAT"] * 3


@pytest.mark.parametrize("more", [{"armed": True}, {"autopilot": common.MAV_AUTOPILOT_ARDUPILOTMEGA}], ids=str)
def test_an_armed_or_foreign_controller_is_left_alone_at_once(more):
    heard, sent = conversation(Probe(ProbeSpec()), Px4(Px4Spec(**more)))
    assert names(sent) == ["HEARTBEAT"]
    assert heard.listened_s <= 0.01
    assert heard.asked == ()


def test_a_controller_that_arms_meanwhile_is_left_alone():
    probe = Probe(ProbeSpec())
    probe.receive(heartbeat_bytes(packer(1, 1)), 0)
    assert probe.advance(0) != b""
    assert not probe.is_over(1_000_000)
    probe.receive(heartbeat_bytes(packer(1, 1), mode=113 | 128), 2_000_000)
    assert (probe.is_over(2_000_000), probe.advance(30_000_000)) == (True, b"")


def test_a_lost_question_is_asked_again():
    heard, sent = conversation(Probe(ProbeSpec(listen_s=4.0)), Px4(Px4Spec()), loses=lambda number: number % 2 == 1)
    assert {name for name in THEIRS if name in PARAMETERS} == set(heard.parameters)
    assert names(sent).count("PARAM_REQUEST_READ") > len(PARAMETERS)


def test_questions_without_an_answer_end():
    _, sent = conversation(Probe(ProbeSpec(listen_s=12.0)), Px4(Px4Spec(parameters={})))
    asked = [message.param_id for _, message in sent if message.get_type() == "PARAM_REQUEST_READ"]
    assert {asked.count(name) for name in PARAMETERS} == {4}
    assert len(asked) == 4 * len(PARAMETERS)


def test_questions_go_to_who_sent_the_heartbeat_one_at_a_time():
    probe = Probe(ProbeSpec())
    probe.receive(heartbeat_bytes(packer(7, 3)), 0)
    questions = [probe.advance(now_ns) for now_ns in range(0, 100_000_000, 1_000_000)]
    frames = [frame.message() for data in questions for frame in Splitter().feed(data)]
    asked = [message for message in frames if message.get_type() == "PARAM_REQUEST_READ"]
    assert [message.param_id for message in asked] == list(PARAMETERS[:5])
    assert {(message.target_system, message.target_component, message.param_index) for message in asked} == {(7, 3, -1)}


def test_the_simulator_link_is_asked_nothing():
    probe = Probe(ProbeSpec(asks=False, listen_s=1.0))
    probe.receive(heartbeat_bytes(packer(1, 1)), 0)
    assert set(names(conversation(probe)[1])) == {"HEARTBEAT"}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.float32(10.5), 9),
        (np.int32(1_310_988), 6),
        (np.int32(-2), 6),
        (np.uint32(3_000_000_000), 5),
        (np.int16(-7), 4),
        (np.uint16(65_000), 3),
        (np.int8(-3), 2),
        (np.uint8(200), 1),
    ],
)
def test_a_parameter_is_read_by_its_type(value, kind):
    assert told(parameter_bytes(value, kind)).parameters == {"X": value.item()}


@pytest.mark.parametrize("more", [{"kind": 6, "name": "Y"}, {"kind": 6, "system": 2}, {"kind": 10}], ids=str)
def test_a_parameter_that_was_not_asked_for_or_is_another_systems_is_left_out(more):
    assert told(parameter_bytes(np.int32(1), **more)).parameters == {}


def test_others_are_distinguished_from_the_controller():
    camera = common.MAVLink_heartbeat_message(30, 8, 0, 0, 4, 3).pack(packer(1, 100))
    heard = told(camera)
    assert heard.beat.component == 1
    assert heard.others == (Beat(system=1, component=100, vehicle_type=30, autopilot=8, base_mode=0),)
    assert not heard.has_echo


def test_an_echo_is_no_controller():
    probe = Probe(ProbeSpec(wait_s=1.0))
    probe.receive(probe.advance(0), 0)
    heard = probe.result(10**9)
    assert (heard.has_echo, heard.beat, heard.others) == (True, None, ())


def test_texts_come_whole_and_once():
    def piece(text, number, place):
        return common.MAVLink_statustext_message(4, text.encode(), number, place).pack(packer(1, 1))

    short = piece("short", 0, 0)
    heard = told(short, piece("a" * 50, 9, 0), short, piece("bc", 9, 1))
    assert heard.texts == (Text(severity=4, text="short"), Text(severity=4, text="a" * 50 + "bc"))


def test_noise_is_counted_and_the_first_of_it_is_kept():
    probe = Probe(ProbeSpec())
    noise = b"nsh> help\r\n" * 1000
    probe.receive(noise, 0)
    heard = probe.result(10**9)
    assert (heard.received_bytes, heard.skipped_bytes, heard.frames, heard.sample) == (11_000, 11_000, 0, noise[:4096])


def test_a_frame_that_was_cut_off_does_not_swallow_the_next():
    probe = Probe(ProbeSpec())
    probe.receive(b"\xfd\xff\x00" + heartbeat_bytes(packer(1, 1)), 0)
    probe.advance(10_000_000)
    assert probe.result(10_000_000).beat is None
    probe.advance(60_000_000)
    assert probe.result(60_000_000).beat is not None


def test_preparing_leaves_the_conversation_untouched():
    probe = Probe(ProbeSpec())
    probe.prepare()
    assert probe.result(0) == Probe(ProbeSpec()).result(0)
    assert probe.advance(0)[4] == 0


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"wait_s": 0.0}, "wait_s must be above 0 and at most 600, got 0"),
        ({"listen_s": 601.0}, "listen_s must be above 0 and at most 600, got 601"),
        ({"system": 0}, "system must be 1 to 255, got 0"),
        ({"component": 256}, "component must be 1 to 255, got 256"),
    ],
)
def test_an_impossible_inquiry_is_refused(arguments, fault):
    with pytest.raises(ValueError, match=fault):
        ProbeSpec(**arguments)
