"""ArduPilot's JSON link: servo packets byte by byte, and a reader of the line that works as SITL's does."""

import json
import math
import re
import struct

import pytest

from hilsim.errors import PacketError
from hilsim.protocols.ardupilot_json import FrameOrder, VehicleReport, decode_servos, encode_report, frame_order, motor_commands

REPORT = {
    "time_ns": 12_345_678_901,
    "gyro_rps": (0.01, -0.02, 1e-7),
    "accel_mps2": (0.0, 0.0, -9.81),
    "position_m": (1.5, -2.5, -10.0),
    "velocity_mps": (0.25, 0.0, -0.5),
    "attitude": (0.5, 0.5, -0.5, 0.5),
}


def servo_packet(magic=18458, rate=1000, count=7, outputs=16):
    return struct.pack(f"<HHI{outputs}H", magic, rate, count, *range(1000, 1000 + outputs))


def report(**changed):
    return VehicleReport(**(REPORT | changed))


def read_as_sitl_does(datagram, section, key, kind):
    """Find ``section``, then ``key`` behind it, as text; skip the quote and the colon; read a number or a vector in which no blank precedes the bracket."""
    text = datagram.decode("ascii").strip("\n")
    at = text.index(section) + len(section) + 1
    at = text.index(key, at) + len(key) + 2
    number = r"[-+]?[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?"
    found = re.match(rf"\[({number}),\s*({number}),\s*({number})(?:,\s*({number}))?\]" if kind == "vector" else rf"({number})", text[at:])
    assert found, f"{section}/{key} not readable at {text[at : at + 20]!r}"
    numbers = tuple(float(group) for group in found.groups() if group is not None)
    return numbers if kind == "vector" else numbers[0]


def test_a_servo_packet_with_16_outputs_is_read():
    frame = decode_servos(servo_packet())
    assert (frame.frame_rate_hz, frame.frame_count, frame.pwm_us) == (1000, 7, tuple(range(1000, 1016)))
    assert frame.step_ns == 1_000_000


def test_a_servo_packet_with_32_outputs_is_read():
    frame = decode_servos(servo_packet(magic=29569, rate=400, count=2**32 - 1, outputs=32))
    assert (frame.frame_rate_hz, frame.frame_count, frame.pwm_us) == (400, 2**32 - 1, tuple(range(1000, 1032)))
    assert frame.step_ns == 2_500_000


@pytest.mark.parametrize(
    ("payload", "fault"),
    [
        (b"", "SITL servo packet must be 40 or 72 bytes, got 0"),
        (servo_packet()[:7], "SITL servo packet must be 40 or 72 bytes, got 7"),
        (servo_packet(magic=18459), "SITL servo packet must start with magic 18458 or 29569, got 18459 at byte 0"),
        (servo_packet()[:-1], "SITL servo packet with magic 18458 must be 40 bytes, got 39"),
        (servo_packet(outputs=32), "SITL servo packet with magic 18458 must be 40 bytes, got 72"),
        (servo_packet(magic=29569), "SITL servo packet with magic 29569 must be 72 bytes, got 40"),
    ],
)
def test_an_invalid_servo_packet_is_refused_with_its_field(payload, fault):
    with pytest.raises(PacketError, match=f"^{fault}$"):
        decode_servos(payload)


@pytest.mark.parametrize("rate", [0, 9, 20_001, 65_535])
def test_a_servo_packet_of_a_rate_out_of_range_names_it_and_has_the_usual_step(rate):
    frame = decode_servos(servo_packet(rate=rate))
    assert (frame.step_ns, f"must be 10 to 20000 Hz, got {rate} at byte 2" in frame.rate_fault) == (833_333, True)
    assert not decode_servos(servo_packet()).rate_fault


def test_motor_commands_are_cut_to_their_ends_and_absent_outputs_stand_still():
    assert motor_commands((1000, 1500, 2000, 900, 2100, 0)) == (0.0, 0.5, 1.0, 0.0, 1.0, 0.0)
    assert motor_commands((1100, 1500, 1900), low_us=1100, high_us=1900) == (0.0, 0.5, 1.0)


@pytest.mark.parametrize(
    ("before", "count", "order", "lost"),
    [
        (None, 0, FrameOrder.FIRST, 0),
        (None, 900, FrameOrder.FIRST, 0),
        (0, 1, FrameOrder.NEXT, 0),
        (7, 8, FrameOrder.NEXT, 0),
        (7, 11, FrameOrder.NEXT, 3),
        (7, 7, FrameOrder.RESENT, 0),
        (7, 6, FrameOrder.FIRST, 0),
        (5000, 0, FrameOrder.FIRST, 0),
    ],
)
def test_frames_are_distinguished_by_their_count(before, count, order, lost):
    assert frame_order(before, count) == (order, lost)


def test_the_report_is_a_line_of_json_framed_by_line_feeds():
    datagram = encode_report(report(ranges_m=(3.25, math.inf)))
    assert datagram.startswith(b"\n{")
    assert datagram.endswith(b"}\n")
    assert datagram.count(b"\n") == 2
    assert json.loads(datagram) == {
        "timestamp": 12.345678901,
        "imu": {"gyro": [0.01, -0.02, 1e-7], "accel_body": [0.0, 0.0, -9.81]},
        "position": [1.5, -2.5, -10.0],
        "velocity": [0.25, 0.0, -0.5],
        "quaternion": [0.5, 0.5, -0.5, 0.5],
        "rng_1": 3.25,
        "rng_2": 1000.0,
    }


def test_the_report_has_exactly_these_bytes():
    assert encode_report(report()) == (
        b'\n{"timestamp":12.345678901,"imu":{"gyro":[0.01,-0.02,1e-07],"accel_body":[0.0,0.0,-9.81]},"position":[1.5,-2.5,-10.0],'
        b'"velocity":[0.25,0.0,-0.5],"quaternion":[0.5,0.5,-0.5,0.5]}\n'
    )


def test_a_reader_that_works_as_sitls_finds_every_field():
    datagram = encode_report(report(ranges_m=tuple(range(1, 7))))
    assert read_as_sitl_does(datagram, "", "timestamp", "number") == 12.345678901
    assert read_as_sitl_does(datagram, "imu", "gyro", "vector") == (0.01, -0.02, 1e-7)
    assert read_as_sitl_does(datagram, "imu", "accel_body", "vector") == (0.0, 0.0, -9.81)
    assert read_as_sitl_does(datagram, "", "position", "vector") == (1.5, -2.5, -10.0)
    assert read_as_sitl_does(datagram, "", "velocity", "vector") == (0.25, 0.0, -0.5)
    assert read_as_sitl_does(datagram, "", "quaternion", "vector") == (0.5, 0.5, -0.5, 0.5)
    assert [read_as_sitl_does(datagram, "", f"rng_{number}", "number") for number in range(1, 7)] == [1, 2, 3, 4, 5, 6]


def test_the_time_stamp_keeps_every_nanosecond_of_a_long_run():
    datagram = encode_report(report(time_ns=4_000_000_000_000_001))
    assert b'"timestamp":4000000.000000001,' in datagram


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"time_ns": -1}, "time_ns must be 0 or more, got -1"),
        ({"gyro_rps": (0.0, math.nan, 0.0)}, "gyro, accel, position, velocity and attitude must be finite, got .*nan.*"),
        ({"attitude": (1.0, 0.1, 0.0, 0.0)}, r"attitude must be a unit quaternion, got \(1.0, 0.1, 0.0, 0.0\)"),
        ({"ranges_m": (1.0,) * 7}, "ranges_m must be at most 6, got 7"),
        ({"ranges_m": (-1.0,)}, r"ranges_m must be 0 or more, got \(-1.0,\)"),
        ({"ranges_m": (math.nan,)}, r"ranges_m must be 0 or more, got \(nan,\)"),
    ],
)
def test_a_report_that_cannot_be_is_refused_by_name(changed, fault):
    with pytest.raises(ValueError, match=f"^{fault}$"):
        report(**changed)
