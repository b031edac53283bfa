"""LD06 packets against a parser written from the manual's table, its example packet, and ArduPilot's rules."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from hilsim.parts.rangefinders.ld06 import LD06_PACKET_DTYPE, Ld06, Ld06Spec, crc8, encode_ld06

SECOND_NS = 1_000_000_000
# The example of LDROBOT's development manual: 2152 deg/s, 324.27 to 334.70 deg, 6714 ms, CRC 50; distances and confidences of its twelve points.
MANUAL_DISTANCES = [224, 220, 217, 213, 211, 208, 205, 202, 199, 197, 194, 192]
MANUAL_CONFIDENCES = [228, 226, 229, 227, 228, 233, 228, 226, 233, 229, 229, 229]


def reference_crc8(data):
    """Polynomial division of the message by x^8 + x^6 + x^3 + x^2 + 1, bit by bit."""
    remainder = int.from_bytes(data, "big") << 8
    for bit in range(remainder.bit_length() - 1, 7, -1):
        if remainder >> bit & 1:
            remainder ^= 0x14D << (bit - 8)
    return remainder


def parse(packet):
    """Speed, azimuths in 0.01 deg (as ArduPilot interpolates them), distances, confidences and stamp of a packet with a right checksum."""
    assert len(packet) == 47
    assert packet[0] == 0x54
    assert packet[1] & 0x1F == 12
    assert packet[1] + 3 == 47  # older versions of ArduPilot's driver take byte 1 for a length
    assert reference_crc8(packet[:46]) == packet[46]
    word = [packet[at] | packet[at + 1] << 8 for at in range(46)]
    first, last = word[4], word[42]
    step = Fraction((last - first) % 36000, 11)
    points = range(6, 42, 3)
    return word[2], [(first + step * k) % 36000 for k in range(12)], [word[at] for at in points], [packet[at + 2] for at in points], word[44]


def packets(until_ns, sample, **changed):
    return Ld06(Ld06Spec(port="/dev/ttyS2", **changed), seed=1, stream=0).frames(0, until_ns, sample)


def wall(range_m):
    return lambda time_ns, _: np.full(time_ns.size, range_m)


def test_the_manuals_example_comes_out():
    azimuth = np.linspace(32427, 33470, 12).astype(np.int64)[np.newaxis]
    packet = encode_ld06(2152, azimuth, np.array([MANUAL_DISTANCES]), np.array([MANUAL_CONFIDENCES]), np.array([6714])).tobytes()
    assert packet[:6].hex() == "542c6808ab7e"
    assert packet[42:].hex() == "be823a1a50"
    assert parse(packet)[2:] == (MANUAL_DISTANCES, MANUAL_CONFIDENCES, 6714)


def test_every_field_is_where_the_manual_says():
    places = {name: offset for name, (_, offset) in LD06_PACKET_DTYPE.fields.items()}
    assert places == {"header": 0, "version_and_points": 1, "speed": 2, "first_azimuth": 4, "points": 6, "last_azimuth": 42, "stamp": 44, "crc": 46}


def test_the_checksum_is_the_remainder_of_polynomial_division():
    rng = np.random.default_rng(3)
    for size in (1, 2, 46, 200):
        data = rng.integers(0, 256, size, dtype=np.uint8)
        assert crc8(data) == reference_crc8(data.tobytes())


def test_a_flipped_bit_is_noticed():
    (first, *_) = packets(SECOND_NS // 100, wall(3.0))
    for byte in range(46):
        broken = bytearray(first.data)
        broken[byte] ^= 0x10
        assert reference_crc8(bytes(broken[:46])) != broken[46]


def test_375_packets_a_second_are_due_when_their_last_point_is_measured():
    sent = packets(SECOND_NS, wall(3.0))
    assert len(sent) == 375
    assert [packet.time_ns for packet in sent] == [-(-(12 * k + 11) * SECOND_NS // 4500) for k in range(375)]
    assert 47 * 375 * 10 <= 230_400


def test_points_are_asked_for_at_their_own_time_and_azimuth_and_reported_there():
    asked = []

    def sample(time_ns, azimuth_deg):
        asked.extend(zip(time_ns.tolist(), azimuth_deg.tolist(), strict=True))
        return np.where(azimuth_deg < 180.0, 2.0, 4.0)

    reported = [point for packet in packets(SECOND_NS, sample, speed_dps=3601) for point in zip(*parse(packet.data)[1:3], strict=True)]
    assert len(reported) == len(asked) == 4500
    for number, ((time_ns, azimuth_deg), (azimuth_cdeg, distance)) in enumerate(zip(asked, reported, strict=True)):
        true_deg = Fraction(number * 3601, 4500) % 360
        assert azimuth_deg == pytest.approx(float(true_deg), abs=1e-9)
        assert time_ns == -(-number * SECOND_NS // 4500)
        off_cdeg = (azimuth_cdeg - 100 * true_deg + 18000) % 36000 - 18000
        assert -1 <= off_cdeg <= 0  # written downwards to 0.01 deg
        assert distance == (2000 if true_deg < 180 else 4000)


def test_the_packet_that_passes_360_degrees_is_read_right():
    sent = [parse(packet.data) for packet in packets(SECOND_NS, wall(3.0))]
    turned = [azimuths for _, azimuths, *_ in sent if azimuths[0] > azimuths[-1]]
    assert len(turned) == 5  # ten turns of 450 points; every other one begins with a packet
    assert all(float(azimuths[0]) > 35_000 and float(azimuths[-1]) < 1_000 for azimuths in turned)


def test_the_speed_and_the_stamp_are_reported_and_the_stamp_begins_again_after_30_s():
    serial_device = Ld06(Ld06Spec(port="/dev/ttyS2", speed_dps=2152), seed=1, stream=0)
    before, after = (parse(packet.data) for packet in serial_device.frames(29_999_000_000, 30_003_000_000, wall(3.0)))
    assert (before[0], before[4], after[4]) == (2152, 29_999, 2)


@pytest.mark.parametrize("range_m", [np.inf, 12.1, 0.019])
def test_a_miss_has_distance_0_and_confidence_0(range_m):
    _, _, distances, confidences, _ = parse(packets(SECOND_NS // 100, wall(range_m))[0].data)
    assert (distances, confidences) == ([0] * 12, [0] * 12)


def test_whatever_is_seen_has_a_confidence_that_ardupilot_counts():
    for range_m, confidence in ((0.5, 230), (6.0, 80), (12.0, 20)):
        _, _, distances, confidences, _ = parse(packets(SECOND_NS // 100, wall(range_m))[0].data)
        assert (distances, confidences) == ([round(range_m * 1000)] * 12, [confidence] * 12)


def test_stretches_that_are_cut_anywhere_give_the_same_packets():
    def sample(_, azimuth_deg):
        return 3.0 + np.sin(np.radians(azimuth_deg))

    spec = Ld06Spec(port="/dev/ttyS2", range_noise_m=0.02)
    whole = Ld06(spec, seed=4, stream=2).frames(0, SECOND_NS // 10, sample)
    serial_device = Ld06(spec, seed=4, stream=2)
    cuts = [0, 1, whole[0].time_ns, whole[0].time_ns + 1, whole[7].time_ns, 50_000_000, SECOND_NS // 10]
    pieces = [serial_device.frames(start, stop, sample) for start, stop in pairwise(cuts)]
    assert [packet for piece in pieces for packet in piece] == whole
    assert all(serial_device.next_ns(packet.time_ns) == packet.time_ns < serial_device.next_ns(packet.time_ns + 1) for packet in whole)


def test_two_units_have_noise_of_their_own():
    spec = Ld06Spec(port="/dev/ttyS2", range_noise_m=0.02)
    one, other = (Ld06(spec, seed=4, stream=stream).frames(0, SECOND_NS // 100, wall(3.0)) for stream in (0, 1))
    assert one != other


def test_nothing_is_answered():
    assert Ld06(Ld06Spec(port="/dev/ttyS2"), seed=1, stream=0).receive(b"\x54", 5) == []


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"speed_dps": 1799}, "speed_dps must be 1800 to 4680, got 1799"),
        ({"speed_dps": 4681}, "speed_dps must be 1800 to 4680, got 4681"),
        ({"baud": 115200}, r"baud must be at least 230400 \(375 packets of 47 bytes a second\), got 115200"),
        ({"range_max_m": 66.0}, "range_min_m and range_max_m must be 0 <= min < max <= 65.535, got 0.02 and 66.0"),
        ({"port": ""}, 'port must be absolute, such as "/dev/serial/by-id/usb-…", got ""'),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(changed, fault):
    with pytest.raises(ValueError, match=f"^{fault}$"):
        Ld06Spec(**({"port": "/dev/ttyS2"} | changed))
