"""The SF45/B against a parser and drivers written from LightWare's description and from how PX4's and ArduPilot's drivers behave."""

import os
import select
import struct
import tty
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.parts.rangefinders.lightware import FrameFinder, crc16, encode_frame
from hilsim.parts.rangefinders.sf45 import UPDATE_PERIODS_NS, Sf45, Sf45Spec, Swing, changed_swing, swing_udeg

MS = 1_000_000
SECOND_NS = 1000 * MS


def reference_crc(data):
    """XMODEM's CRC as polynomial division by x^16 + x^12 + x^5 + 1."""
    remainder = int.from_bytes(data, "big") << 16
    for bit in range(remainder.bit_length() - 1, 15, -1):
        if remainder >> bit & 1:
            remainder ^= 0x11021 << (bit - 16)
    return remainder


def frame(command, data=b"", *, write=False):
    """A frame by hand."""
    body = struct.pack("<BHB", 0xAA, (1 + len(data)) << 6 | write, command) + data
    return body + struct.pack("<H", reference_crc(body))


def parse(data):
    """Command and data of one whole frame; it must be nothing but that."""
    start, flags, command = struct.unpack_from("<BHB", data)
    size = flags >> 6
    assert (start, len(data)) == (0xAA, size + 5)
    assert reference_crc(data[:-2]) == int.from_bytes(data[-2:], "little")
    return command, data[4:-2]


def wall(range_m=7.5):
    return lambda time_ns, _: np.full(time_ns.size, range_m)


def device(**changed):
    return Sf45(Sf45Spec(port="/dev/ttyS3", **changed), seed=1, stream=0)


def streaming(at_ns=0, **changed):
    """A sensor that was set to stream as both autopilots' drivers tell it, but for the rate."""
    sensor = device(**changed)
    sensor.receive(frame(27, struct.pack("<I", 0x101), write=True) + frame(30, struct.pack("<I", 5), write=True), at_ns)
    return sensor


def readings(frames):
    """``(time_ns, cm, 0.01 deg)`` of frames with the fields that the autopilots ask for."""
    parsed = [(due_ns, *parse(data)) for due_ns, data in frames]
    assert all(command == 44 and len(data) == 4 for _, command, data in parsed)
    return [(due_ns, *struct.unpack("<hh", data)) for due_ns, _, data in parsed]


def test_the_checksum_is_xmodems():
    assert crc16(np.frombuffer(b"123456789", np.uint8)) == 0x31C3 == reference_crc(b"123456789")


@given(st.integers(0, 255), st.binary(max_size=130), st.booleans())
def test_an_independent_parser_reads_framed_packets(command, data, write):
    framed = encode_frame(command, data, write=write)
    assert framed == frame(command, data, write=write)
    assert FrameFinder().feed(framed, 0) == [(command, write, data)]


def test_the_product_name_comes_in_the_22_bytes_that_px4_reads():
    (answer,) = device().receive(frame(0), 0)
    assert answer == bytes.fromhex("aa400400") + b"SF45" + bytes(12) + reference_crc(answer[:-2]).to_bytes(2, "little")
    assert len(answer) == 22


def test_the_handshake_of_px4_is_answered_step_by_step_and_nothing_streams_before_its_end():
    sensor = device()
    steps = [
        (frame(0), 22, 0, b"SF45" + bytes(12)),
        (frame(66, b"\x05", write=True), 7, 66, b"\x05"),
        (frame(27, struct.pack("<I", 0x101), write=True), 10, 27, struct.pack("<I", 0x101)),
        (frame(30, struct.pack("<I", 5), write=True), 10, 30, struct.pack("<I", 5)),
    ]
    for number, (request, size, command, data) in enumerate(steps):
        now_ns = number * 20 * MS
        assert not sensor.streams
        assert sensor.frames(now_ns - 20 * MS, now_ns, wall()) == []
        (answer,) = sensor.receive(request, now_ns)
        assert (len(answer), parse(answer)) == (size, (command, data))
    assert sensor.streams
    streamed = sensor.frames(60 * MS, 160 * MS, wall())
    assert len(streamed) == 50
    assert {len(data) for _, data in streamed} == {10}


def test_the_requests_of_ardupilot_in_one_piece_are_echoed_in_their_order():
    asked = [(66, b"\x06"), (27, struct.pack("<I", 0x101)), (30, struct.pack("<I", 5))]
    answers = device().receive(b"".join(frame(command, data, write=True) for command, data in asked), 0)
    assert [parse(answer) for answer in answers] == asked


def test_asking_again_changes_nothing_in_the_stream():
    one, other = streaming(), streaming()
    again = frame(66, b"\x05", write=True) + frame(27, struct.pack("<I", 0x101), write=True) + frame(30, struct.pack("<I", 5), write=True)
    before, _, after = other.frames(0, 5 * MS, wall()), other.receive(again, 5 * MS), other.frames(5 * MS, 50 * MS, wall())
    assert before + after == one.frames(0, 50 * MS, wall())


def test_streaming_stops_on_request():
    sensor = streaming()
    assert len(sensor.frames(0, 11 * MS, wall())) == 5
    assert [parse(answer) for answer in sensor.receive(frame(30, bytes(4), write=True), 11 * MS)] == [(30, bytes(4))]
    assert sensor.frames(11 * MS, SECOND_NS, wall()) == []


def test_a_distance_that_is_asked_for_comes_once_with_the_next_measurement():
    sensor = device()
    assert sensor.receive(frame(44), 3 * MS) == []
    assert sensor.frames(3 * MS, 4 * MS, wall()) == []
    assert [reading[:2] for reading in readings(sensor.frames(4 * MS, 20 * MS, wall()))] == [(4 * MS, 750)]
    assert sensor.frames(20 * MS, 40 * MS, wall()) == []


@pytest.mark.parametrize("cut", range(1, 17))
def test_requests_may_arrive_in_any_portions(cut):
    sensor = device()
    stream = frame(66, b"\x03", write=True) + frame(27, struct.pack("<I", 0x101), write=True)
    assert len(stream) == 17
    answers = sensor.receive(stream[:cut], 0) + sensor.receive(stream[cut:], MS)
    assert [parse(answer) for answer in answers] == [(66, b"\x03"), (27, struct.pack("<I", 0x101))]


@pytest.mark.parametrize("noise", [b"\x00\x01", b"\xaa", b"\xaa\xaa\xaa", b"\xaa\x80\x00", b"\xaa\xff\xff", b"\xaa\x00\x00", frame(0)[5:]])
def test_noise_in_front_of_a_request_hides_it_not(noise):
    assert [parse(answer) for answer in device().receive(noise + frame(66, b"\x03", write=True) + frame(0), 0)] == [
        (66, b"\x03"),
        (0, b"SF45" + bytes(12)),
    ]


def test_an_unfinished_frame_is_given_up_after_a_pause():
    sensor = device()
    assert sensor.receive(b"\xaa\x80\x20\x00", 0) == []
    assert sensor.receive(frame(0), 50 * MS) == []  # taken for data of the frame that was begun
    assert len(sensor.receive(frame(0), 300 * MS)) == 1


@pytest.mark.parametrize("byte", range(7))
def test_a_request_with_a_flipped_bit_is_not_obeyed(byte):
    request = bytearray(frame(66, b"\x03", write=True))
    request[byte] ^= 0x04
    sensor = streaming()
    assert sensor.receive(bytes(request), 0) == []
    assert len(sensor.frames(0, 20 * MS, wall())) == 9


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_any_received_bytes_are_harmless(one, other):
    sensor = device()
    for data in (one, b"\xaa" + other):
        for answer in sensor.receive(data, 0):
            parse(answer)
    assert [parse(answer) for answer in sensor.receive(frame(0), SECOND_NS)] == [(0, b"SF45" + bytes(12))]


@pytest.mark.parametrize(
    "request_bytes",
    [
        frame(5),
        frame(200, b"\x01", write=True),
        frame(66, b"\x03\x00", write=True),
        frame(66, write=True),
        frame(57, bytes(4), write=True),
        frame(0, bytes(16), write=True),
    ],
    ids=["unknown read", "unknown write", "too long", "too short", "temperature cannot be set", "name cannot be set"],
)
def test_unknown_commands_of_a_sensor_get_no_answer(request_bytes):
    assert device().receive(request_bytes, 0) == []


@pytest.mark.parametrize(
    ("command", "refused", "held"),
    [
        (66, b"\x00", b"\x05"),
        (66, b"\x0d", b"\x05"),
        (30, struct.pack("<I", 4), struct.pack("<I", 0)),
        (85, struct.pack("<H", 4), struct.pack("<H", 5)),
        (98, struct.pack("<f", -171.0), struct.pack("<f", -160.0)),
        (99, struct.pack("<f", float("nan")), struct.pack("<f", 160.0)),
        (96, b"\x02", b"\x01"),
    ],
)
def test_a_value_that_is_none_is_answered_with_the_one_that_holds(command, refused, held):
    sensor = device()
    assert [parse(answer) for answer in sensor.receive(frame(command, refused, write=True) + frame(command), 0)] == [(command, held)] * 2


def test_commands_of_a_driver_are_reported():
    sensor = device(serial_number="S45-9")
    told = [parse(answer) for answer in sensor.receive(b"".join(frame(command) for command in (1, 2, 3, 50, 57, 79, 85, 93, 98, 99)), 0)]
    assert told == [
        (1, struct.pack("<I", 1)),
        (2, bytes((0, 0, 2, 0))),
        (3, b"S45-9".ljust(16, b"\0")),
        (50, b"\x01"),
        (57, struct.pack("<i", 4000)),
        (79, b"\x07"),
        (85, struct.pack("<H", 5)),
        (93, b"\x01"),
        (98, struct.pack("<f", -160.0)),
        (99, struct.pack("<f", 160.0)),
    ]


def test_user_data_are_kept():
    sensor = device()
    sensor.receive(frame(9, b"0123456789abcdef", write=True), 0)
    assert [parse(answer) for answer in sensor.receive(frame(9), 0)] == [(9, b"0123456789abcdef")]


def test_the_update_rates_are_the_vendors_tables():
    rates_hz = [1e9 / period_ns for period_ns in UPDATE_PERIODS_NS["twelve"]]
    assert rates_hz == pytest.approx([50, 100, 200, 400, 500, 625, 1000, 1250, 1538, 2000, 2500, 5000], rel=0.0004)
    assert [int(1e9 / period_ns + 0.001) for period_ns in UPDATE_PERIODS_NS["eight"]] == [48, 55, 64, 77, 97, 129, 194, 388]


@pytest.mark.parametrize(("rates", "setting", "count"), [("twelve", 6, 625), ("twelve", 9, 1538), ("eight", 6, 129)])
def test_a_second_holds_the_measurements_of_the_rate_that_was_set(rates, setting, count):
    sensor = streaming(update_rates=rates)
    assert [parse(answer)[1] for answer in sensor.receive(frame(66, bytes([setting]), write=True), 0)] == [bytes([setting])]
    assert len(sensor.frames(0, SECOND_NS + 1, wall())) == count


def test_a_rate_of_the_longer_table_is_refused_by_the_shorter():
    assert [parse(answer) for answer in device(update_rates="eight").receive(frame(66, b"\x09", write=True), 0)] == [(66, b"\x05")]


def test_a_new_rate_begins_where_it_was_set():
    sensor = streaming()
    before = sensor.frames(0, 5 * MS, wall())
    sensor.receive(frame(66, b"\x02", write=True), 5 * MS)
    after = sensor.frames(5 * MS, 40 * MS, wall())
    assert [due_ns // MS for due_ns, _ in before + after] == [2, 4, 15, 25, 35]
    assert sensor.next_ns(35 * MS + 1) == 45 * MS


def test_a_miss_is_minus_one_metre_which_no_driver_takes_for_an_obstacle():
    sensor = streaming()
    for number, range_m in enumerate((np.inf, 50.01, 0.19)):
        (reading,) = readings(sensor.frames(number * 2 * MS + 1, number * 2 * MS + 2 * MS + 1, wall(range_m)))
        assert reading[1] == -100
    (reading,) = readings(sensor.frames(6 * MS + 1, 8 * MS + 1, wall(12.344)))
    assert reading[1] == 1234


def test_a_laser_that_is_switched_off_sees_nothing():
    sensor = streaming()
    sensor.receive(frame(50, b"\x00", write=True), 0)
    assert {distance for _, distance, _ in readings(sensor.frames(0, 20 * MS, wall()))} == {-100}


def test_the_beam_begins_ahead_turns_clockwise_and_swings_between_its_angles():
    angles = np.array([yaw for *_, yaw in readings(streaming().frames(0, 4 * SECOND_NS, wall()))]) / 100.0
    assert angles[0] == pytest.approx(0.78)
    assert angles[:100] == pytest.approx(0.78 * np.arange(1, 101), abs=0.006)
    assert (angles.min(), angles.max()) == (pytest.approx(-160.0, abs=0.78), pytest.approx(160.0, abs=0.78))
    turns = np.flatnonzero(np.diff(np.sign(np.diff(angles))))
    assert np.diff(turns) * 0.002 == pytest.approx(320.0 / 390.0, abs=0.005)


def test_rays_are_asked_for_where_the_yaw_says():
    asked = []

    def sample(time_ns, azimuth_deg):
        asked.extend(zip(time_ns.tolist(), azimuth_deg.tolist(), strict=True))
        return np.where(azimuth_deg > 0.0, 5.0, 9.0)

    said = readings(streaming().frames(0, 2 * SECOND_NS, sample))
    assert [due_ns for due_ns, *_ in said] == [time_ns for time_ns, _ in asked]
    assert [yaw / 100.0 for *_, yaw in said] == pytest.approx([azimuth for _, azimuth in asked], abs=0.00501)
    assert all(distance == (500 if azimuth > 0.0 else 900) for (_, distance, _), (_, azimuth) in zip(said, asked, strict=True))


def test_the_driver_sets_the_angles_and_the_speed():
    sensor = streaming()
    settings = [(98, struct.pack("<f", -30.0)), (99, struct.pack("<f", 45.0)), (85, struct.pack("<H", 10))]
    assert [parse(answer) for answer in sensor.receive(b"".join(frame(command, data, write=True) for command, data in settings), 0)] == settings
    angles = np.array([yaw for *_, yaw in readings(sensor.frames(0, 2 * SECOND_NS, wall()))]) / 100.0
    assert (angles.min(), angles.max()) == (pytest.approx(-30.0, abs=0.4), pytest.approx(45.0, abs=0.4))
    assert abs(np.diff(angles)).max() == pytest.approx(195.0 * 0.002, abs=0.011)


def test_a_scan_that_is_stopped_points_at_its_position_and_goes_on_where_it_was():
    sensor = streaming()
    sensor.receive(frame(97, struct.pack("<f", -12.5), write=True) + frame(96, b"\x00", write=True), 100 * MS)
    assert {yaw for *_, yaw in readings(sensor.frames(100 * MS, 200 * MS, wall()))} == {-1250}
    sensor.receive(frame(96, b"\x01", write=True), 200 * MS)
    (_, _, yaw), *_ = readings(sensor.frames(200 * MS, 210 * MS, wall()))
    assert yaw == 3900  # 100 ms at 390 deg/s, taken at 200 ms


def test_a_swing_is_exact_after_a_year():
    swing = Swing(-160_000_000, 160_000_000, 390_000_000, 0, 160_000_000)
    year_ns = 31_557_600 * SECOND_NS + 123_456_789
    way = (160_000_000 + 390_000_000 * year_ns // SECOND_NS) % 640_000_000
    assert swing_udeg(swing, np.array([year_ns]))[0] == -160_000_000 + (way if way <= 320_000_000 else 640_000_000 - way)


@given(st.integers(0, 10 * SECOND_NS), st.integers(0, SECOND_NS))
def test_a_changed_swing_goes_on_without_a_jump(at_ns, later_ns):
    swing = Swing(-160_000_000, 160_000_000, 390_000_000, 0, 160_000_000)
    slower = changed_swing(swing, at_ns, low_udeg=-160_000_000, high_udeg=170_000_000, speed_udps=100_000_000)
    now, before = swing_udeg(slower, np.array([at_ns]))[0], swing_udeg(swing, np.array([at_ns]))[0]
    assert now == before
    moved = swing_udeg(slower, np.array([at_ns + later_ns]))[0] - now
    assert abs(moved) <= later_ns // 10 + 1


@pytest.mark.parametrize(("at_ns", "angle_deg", "moved_deg"), [(100 * MS, 39.0, 10.0), (1000 * MS, -70.0, -10.0)])
def test_a_changed_swing_keeps_its_direction(at_ns, angle_deg, moved_deg):
    swing = Swing(-160_000_000, 160_000_000, 390_000_000, 0, 160_000_000)
    slower = changed_swing(swing, at_ns, low_udeg=-150_000_000, high_udeg=150_000_000, speed_udps=100_000_000)
    then = np.array([at_ns, at_ns + 100 * MS])
    assert swing_udeg(slower, then).tolist() == [angle_deg * 1e6, (angle_deg + moved_deg) * 1e6]


def test_every_field_of_the_output_can_be_chosen():
    sensor = streaming()
    sensor.receive(frame(27, struct.pack("<I", 0x1FF), write=True), 0)
    ((_, data),) = sensor.frames(0, 3 * MS, wall(5.0))
    assert parse(data) == (44, struct.pack("<9h", 500, 500, 100, 500, 500, 100, 0, 4000, 78))
    sensor.receive(frame(27, struct.pack("<I", 0x185), write=True), 3 * MS)
    ((_, data),) = sensor.frames(3 * MS, 5 * MS, wall(25.0))
    assert parse(data) == (44, struct.pack("<4h", 2500, 4, 4000, 156))


def test_stretches_that_are_cut_anywhere_give_the_same_frames():
    def sample(_, azimuth_deg):
        return 10.0 + np.sin(np.radians(azimuth_deg))

    whole = streaming(range_noise_m=0.1).frames(0, 100 * MS, sample)
    sensor = streaming(range_noise_m=0.1)
    cuts = [0, 1, 2 * MS, 2 * MS + 1, 33 * MS, 100 * MS]
    assert [one for start, stop in pairwise(cuts) for one in sensor.frames(start, stop, sample)] == whole


class Pty:
    """A driver at one end of a real pseudo terminal and the sensor at the other; time is given, not awaited."""

    def __init__(self, sensor):
        self.sensor = sensor
        self.now_ns = 0
        self._sensor_end, self._driver_end = os.openpty()
        for end in (self._sensor_end, self._driver_end):
            tty.setraw(end)
            os.set_blocking(end, False)

    def close(self):
        os.close(self._sensor_end)
        os.close(self._driver_end)

    def ask(self, request):
        """What a driver finds after its request, once all has come."""
        os.write(self._driver_end, request)
        answers = self.sensor.receive(_all_of(self._sensor_end, len(request)), self.now_ns)
        for answer in answers:
            assert os.write(self._sensor_end, answer) == len(answer)
        return _all_of(self._driver_end, sum(map(len, answers)))

    def listen(self, span_ns, sample):
        """What a driver finds that reads once after each frame."""
        until_ns = self.now_ns + span_ns
        for _, data in self.sensor.frames(self.now_ns, until_ns, sample):
            os.write(self._sensor_end, data)
            yield _all_of(self._driver_end, len(data))
        self.now_ns = until_ns


def _all_of(end, size):
    """What arrives at an end until it is ``size`` bytes: the kernel carries them over when it has the time, and may cut them."""
    arrived = b""
    while len(arrived) < size:
        readable, _, _ = select.select([end], [], [], 30.0)
        assert readable, f"{len(arrived)} of {size} bytes came"
        arrived += os.read(end, 4096)
    return arrived


@pytest.fixture
def pty():
    opened = Pty(device())
    yield opened
    opened.close()


def test_a_driver_as_strict_as_px4s_gets_each_frame_whole_through_a_real_pty(pty):
    for request, size, command in (
        (frame(0), 22, 0),
        (frame(66, b"\x05", write=True), 7, 66),
        (frame(27, struct.pack("<I", 0x101), write=True), 10, 27),
        (frame(30, struct.pack("<I", 5), write=True), 10, 30),
    ):
        answer = pty.ask(request)
        assert (len(answer), parse(answer)[0]) == (size, command)
        pty.now_ns += 2 * MS
    bins = {}
    for read in pty.listen(4 * SECOND_NS, lambda _, azimuth_deg: np.where(np.abs(azimuth_deg - 90.0) < 20.0, 3.0, np.inf)):
        assert (len(read), parse(read)[0]) == (10, 44)
        distance, yaw = struct.unpack("<Hh", parse(read)[1])  # PX4 reads the distance without a sign
        sector = round(yaw / 100.0 % 360.0 / 5.0) % 72
        bins[sector] = min(bins.get(sector, 65535), distance)
    assert {sector for sector, distance in bins.items() if distance <= 5000} == set(range(14, 23))  # 70 to 110 degrees, on the right
    assert all(distance in {300, 65436} for distance in bins.values())
    assert set(range(72)) - set(bins) == set(range(33, 40))  # behind the ends of the swing


def test_a_driver_as_ardupilots_counts_distances_only_while_what_it_asked_for_is_echoed(pty):
    asked = {66: b"\x06", 27: struct.pack("<I", 0x101), 30: struct.pack("<I", 5)}
    echoed, counted = {}, 0
    stream = pty.ask(b"".join(frame(command, data, write=True) for command, data in asked.items()))
    assert [len(part) for part in pty.listen(10 * MS, wall())] == [10] * 6
    for request in FrameFinder().feed(stream, 0):
        echoed[request.command] = request.data
    assert echoed == asked
    for read in pty.listen(200 * MS, wall(4.0)):
        command, data = parse(read)
        assert (command, len(data)) == (44, 4)
        counted += struct.unpack("<h", data[:2])[0] == 400
    assert counted == 125


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"low_angle_deg": -171.0}, "low_angle_deg must be -170 to -5, got -171.0"),
        ({"high_angle_deg": 4.0}, "high_angle_deg must be 5 to 170, got 4.0"),
        ({"update_rate": 9, "update_rates": "eight"}, r"update_rate must be 1 to 8 \(update_rates eight\), got 9"),
        ({"scan_speed_dps": 0.0}, "scan_speed_dps must be 1 to 5000, got 0.0"),
        ({"scan_speed_setting": 4}, "scan_speed_setting must be 5 to 2000, got 4"),
        ({"serial_number": "n" * 16}, 'serial_number must be 1 to 15 printable ASCII characters, got "n{16}"'),
        ({"mount_rotation_deg": (0.0, 0.0, float("inf"))}, r"mount_rotation_deg must be finite, got \(0.0, 0.0, inf\)"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(changed, fault):
    with pytest.raises(ValueError, match=f"^{fault}$"):
        device(**changed)
