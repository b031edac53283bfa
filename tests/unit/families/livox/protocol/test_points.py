"""Livox's point and IMU packets against their published layout, read here by ``struct``."""

import struct
from zlib import crc32 as crc32_of

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.errors import PacketError
from hilsim.families.livox.protocol.commands import crc16
from hilsim.families.livox.protocol.imu import read_imu, write_imu_packet
from hilsim.families.livox.protocol.points import POINT_DTYPES, PacketHead, has_valid_crc, packet_size, read_points, seal, write_header, write_point
from hilsim.families.livox.recognition import LivoxKind, recognise
from hilsim.protocols.crc32 import crc32

HEAD = PacketHead(4750, 2, 65_541, 1, 2, 0x0123_4567_89AB_CDEF)


def packet(head, points):
    """A packet with points of three numbers, reflectivity and tag."""
    size = packet_size(head.data_type, len(points))
    payload = np.full(size, 0xEE, np.uint8)
    write_header(head, size, payload, 0)
    at = 36
    for point in points:
        at = write_point(head.data_type, *point, payload, at)
    seal(size, payload, 0)
    assert at == size
    return payload.tobytes()


def imu_packet(measurement):
    payload = np.full(60, 0xEE, np.uint8)
    write_imu_packet(PacketHead(0, 1, 3, 0, 1, 77), tuple(map(float, measurement[:3])), tuple(map(float, measurement[3:])), payload)
    return payload.tobytes()


POINTS = [(-1234, 70_000, 5, 150, 0x29), (1, -1, 0, 255, 0)]


def test_every_field_of_the_header_is_at_its_place():
    payload = packet(HEAD, POINTS)
    fields = struct.unpack_from("<BHHHHBBB12sIQ", payload)
    assert fields[:9] == (0, 64, 4750, 2, 5, 0, 1, 2, bytes(12))
    assert fields[9:] == (crc32_of(payload[28:]), 0x0123_4567_89AB_CDEF)


@pytest.mark.parametrize(("data_type", "form", "size"), [(1, "<iiiBB", 14), (2, "<hhhBB", 8), (3, "<IHHBB", 10)])
def test_points_of_every_type_have_their_layout(data_type, form, size):
    point = (1234, 17_999, 35_999, 7, 1) if data_type == 3 else (-1234, 32_767, -5, 7, 1)
    payload = packet(HEAD._replace(data_type=data_type), [point, point])
    assert struct.unpack_from(form, payload, 36 + size) == point
    assert len(payload) == 36 + 2 * size
    assert packet_size(data_type) == {1: 1380, 2: 804, 3: 996}[data_type]


def test_a_packet_has_its_golden_bytes():
    header = "0032008e1202000500000102000000000000000000000000"
    assert packet(HEAD._replace(points=2), POINTS[:1]).hex() == header + "4348965befcdab89674523012efbffff70110100050000009629"


def test_an_imu_packet_has_its_layout():
    payload = imu_packet([1, 2, 3, 0.5, -0.25, 1])
    assert struct.unpack_from("<BHHHHBBB12sIQ6f", payload)[:9] == (0, 60, 0, 1, 3, 0, 0, 1, bytes(12))
    assert struct.unpack_from("<6f", payload, 36) == (1, 2, 3, 0.5, -0.25, 1)
    assert has_valid_crc(payload)
    header, measurements = read_imu(payload)
    assert (header.stamp_ns, measurements.tolist()) == (77, [[1, 2, 3, 0.5, -0.25, 1]])


@given(
    st.sampled_from([1, 2, 3]).flatmap(
        lambda kind: st.tuples(
            st.just(kind),
            st.lists(st.tuples(*(st.integers(*span) for span in _spans(kind)), st.integers(0, 255), st.integers(0, 255)), min_size=1, max_size=96),
        )
    ),
    st.tuples(st.integers(0, 65_535), st.integers(0, 65_535), st.integers(0, 2), st.integers(0, 2**63 - 1)),
)
def test_what_is_written_is_read_again(data, head):
    kind, points = data
    interval, number, time_type, stamp_ns = head
    payload = packet(PacketHead(interval, len(points), number, kind, time_type, stamp_ns), points)
    header, found = read_points(payload)
    assert (header.interval, header.count, header.number, header.time_type, header.stamp_ns) == (interval, len(points), *head[1:])
    assert [tuple(point) for point in found.tolist()] == points
    assert recognise(payload) is LivoxKind.POINTS
    assert has_valid_crc(payload)
    assert not has_valid_crc(payload[:-1] + bytes([payload[-1] ^ 1]))


def _spans(kind):
    if kind == 3:
        return (0, 2**32 - 1), (0, 65_535), (0, 65_535)
    most = 2**31 - 1 if kind == 1 else 2**15 - 1
    return ((-most - 1, most),) * 3


@pytest.mark.parametrize(
    ("at", "value", "text"),
    [
        (0, 1, "version (byte 0) must be 0, got 1"),
        (1, 63, "length (byte 1) must be that of the payload, 64, got 63"),
        (5, 0, "number of points (byte 5) must be at least 1, got 0"),
        (5, 3, "length (byte 1) of 3 of data type 1 must be 78, got 64"),
        (10, 4, "data type (byte 10) must be 0 to 3, got 4"),
        (11, 3, "time type (byte 11) must be 0 to 2, got 3"),
    ],
)
def test_a_fault_is_named_by_field_and_byte(at, value, text):
    payload = bytearray(packet(HEAD, POINTS))
    payload[at] = value
    with pytest.raises(PacketError) as raised:
        read_points(bytes(payload))
    assert text in str(raised.value)
    assert recognise(bytes(payload)) is None


def test_points_and_measurements_are_told_apart():
    assert recognise(imu_packet([0] * 6)) is LivoxKind.IMU
    with pytest.raises(PacketError, match=r"data type \(byte 10\) must be 1 to 3"):
        read_points(imu_packet([0] * 6))
    with pytest.raises(PacketError, match=r"data type \(byte 10\) must be 0"):
        read_imu(packet(HEAD, POINTS))
    with pytest.raises(PacketError, match="must have a header of 36 bytes, got 35"):
        read_points(bytes(35))


def test_checksums_have_their_check_values():
    text = np.frombuffer(b"..123456789.", np.uint8).copy()
    assert (crc32(text, 2, 11), crc16(b"123456789")) == (0xCBF4_3926, 0x29B1)


@given(st.binary(max_size=1500))
def test_bytes_that_are_no_packet_are_none(payload):
    assert recognise(payload) is None or len(payload) > 20
    assert [dtype.itemsize for dtype in POINT_DTYPES.values()] == [14, 8, 10]
