"""The header of Cepton's STDV packet against its published layout."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.families.cepton.protocol.stdv import FRAME_PARITY, SEQUENCE_OFFSET, STAMP_OFFSET, StdvHeader, frame_parities, read_stdv_header


def packet(*, version=1, size=20, stamp_us=1_600_000_000_123_456, point_size=10, points=3, tail=None):
    """Bytes by the specification's table."""
    header = struct.pack("<4sBBHqBBH", b"STDV", version, size, 0, stamp_us, 1, point_size, points)
    body = bytes(range(1, 1 + max(size - 20, 0))) + bytes(points * point_size)
    return header + (body if tail is None else tail)


def with_parities(payload, header, parities, others=0):
    changed = bytearray(payload)
    for number, parity in enumerate(parities):
        changed[header.size + number * header.point_size + 9] = others | (0x04 if parity else 0)
    return bytes(changed)


def test_every_field_is_read_from_its_place():
    assert read_stdv_header(packet()) == StdvHeader(version=1, size=20, stamp_us=1_600_000_000_123_456, point_size=10, points=3, sequence=None)
    assert (STAMP_OFFSET, SEQUENCE_OFFSET) == (8, 20)


def test_version_2_has_a_sequence_number_behind_the_version_1_header():
    payload = packet(version=2, size=24, tail=struct.pack("<I", 4_000_000_000) + bytes(30))
    assert read_stdv_header(payload).sequence == 4_000_000_000
    assert read_stdv_header(packet(version=2, size=20)).sequence is None


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"STDV",
        packet()[:19],
        packet()[:-1],
        b"STDT" + packet()[4:],
        packet(size=19),
        packet(point_size=9),
        packet(points=65_535, tail=bytes(30)),
        packet(size=255, tail=bytes(30)),
    ],
)
def test_an_incomplete_packet_has_no_header(payload):
    assert read_stdv_header(payload) is None


def test_a_packet_without_points_and_one_with_bytes_behind_them_are_whole():
    assert read_stdv_header(packet(points=0)).points == 0
    assert read_stdv_header(packet() + b"more").points == 3


@given(
    st.lists(st.booleans(), max_size=100),
    st.sampled_from([10, 12]),
    st.sampled_from([(1, 20), (2, 24)]),
    st.integers(0, 255).map(lambda bits: bits & ~4),
)
def test_the_frame_parity_of_every_point_is_bit_2_of_its_flags_alone(parities, point_size, layout, others):
    payload = packet(version=layout[0], size=layout[1], point_size=point_size, points=len(parities))
    header = read_stdv_header(payload)
    changed = with_parities(payload, header, parities, others)
    assert frame_parities(changed, header) == bytes(FRAME_PARITY if parity else 0 for parity in parities)
    assert frame_parities(changed + b"\xff" * 20, header) == frame_parities(changed, header)


@given(st.binary(max_size=200).map(lambda tail: b"STDV" + tail))
def test_whatever_follows_the_name_reading_it_stays_within_the_payload(payload):
    header = read_stdv_header(payload)
    if header is not None:
        assert header.size + header.points * header.point_size <= len(payload)
        assert len(frame_parities(payload, header)) == header.points
