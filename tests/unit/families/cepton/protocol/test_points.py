"""STDV packets as they are written: the documented table, golden bytes, every value of every field, and a decoder that shares no code."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.errors import PacketError
from hilsim.families.cepton.protocol.stdv import (
    POINT_DTYPE,
    PointFlag,
    decode_stdv_points,
    encode_stdv_packet,
    header_size,
    packet_size,
    point_times_us,
    points_max,
    read_stdv_header,
    write_stdv_header,
    write_stdv_point,
)

ONE = (-2, 40_000, 3, 127, 255, 71, 0x24)


def points(*rows):
    return np.array(list(rows), dtype=POINT_DTYPE)


def by_struct(payload):
    """Header fields and points by the published table alone."""
    signature, version, size, flags, stamp_us, point_version, point_size, count = struct.unpack_from("<4sBBHQBBH", payload)
    sequence = struct.unpack_from("<I", payload, 20)[0] if version == 2 else None
    rows = [struct.unpack_from("<hHhBBBB", payload, size + at * point_size) for at in range(count)]
    return (signature, version, size, flags, stamp_us, point_version, point_size, count, sequence), rows


@pytest.mark.parametrize(
    ("field", "offset", "kind"),
    [("x", 0, "<i2"), ("y", 2, "<u2"), ("z", 4, "<i2"), ("reflectivity", 6, "u1"), ("step_us", 7, "u1"), ("channel", 8, "u1"), ("flags", 9, "u1")],
)
def test_the_fields_of_a_point_are_where_the_public_header_says(field, offset, kind):
    assert POINT_DTYPE.fields[field] == (np.dtype(kind), offset)
    assert POINT_DTYPE.itemsize == 10


def test_flags_have_the_bits_of_the_public_header():
    names = ("SATURATED", "BLOOMING", "FRAME_PARITY", "FRAME_BOUNDARY", "SECOND_RETURN", "NO_RETURN", "NOISE", "BLOCKED")
    assert [PointFlag[name].value for name in names] == [1 << bit for bit in range(8)]


def test_a_version_2_packet_has_its_golden_bytes():
    payload = encode_stdv_packet(points(ONE, (32_767, 65_535, -32_768, 0, 0, 0, 0)), stamp_us=0x0102030405060708, sequence=0xFFFFFFFE)
    assert payload.hex(" ") == (
        "53 54 44 56 02 18 00 00 08 07 06 05 04 03 02 01 00 0a 02 00 fe ff ff ff fe ff 40 9c 03 00 7f ff 47 24 ff 7f ff ff 00 80 00 00 00 00"
    )


def test_a_version_1_packet_has_its_golden_bytes():
    payload = encode_stdv_packet(points(ONE), stamp_us=0x0807060504030201, sequence=7, version=1)
    assert payload.hex(" ") == "53 54 44 56 01 14 00 00 01 02 03 04 05 06 07 08 00 0a 01 00 fe ff 40 9c 03 00 7f ff 47 24"


@pytest.mark.parametrize(("version", "most", "size"), [(1, 143, 1450), (2, 144, 1464)])
def test_a_full_packet_has_the_documented_size_and_one_point_more_is_refused(version, most, size):
    full = encode_stdv_packet(points(*[ONE] * most), stamp_us=0, version=version)
    assert (len(full), packet_size(version, most), points_max(version)) == (size, size, most)
    assert len(decode_stdv_points(full)) == most
    with pytest.raises(PacketError, match=f"an STDV packet of version {version} must have at most {most} points, got {most + 1}"):
        encode_stdv_packet(points(*[ONE] * (most + 1)), stamp_us=0, version=version)


@pytest.mark.parametrize("version", [0, 3])
def test_there_is_no_other_version(version):
    with pytest.raises(ValueError, match=f"header_version must be 1 or 2, got {version}"):
        header_size(version)


any_point = st.tuples(st.integers(-32_768, 32_767), st.integers(0, 65_535), st.integers(-32_768, 32_767), *[st.integers(0, 255)] * 4)


@given(st.lists(any_point, max_size=143), st.integers(0, 2**63 - 1), st.integers(0, 2**32 - 1), st.sampled_from([1, 2]))
def test_whatever_is_written_is_read_back_by_our_decoder_and_by_plain_struct(rows, stamp_us, sequence, version):
    payload = encode_stdv_packet(points(*rows), stamp_us=stamp_us, sequence=sequence, version=version)
    assert len(payload) == packet_size(version, len(rows))
    header, read = by_struct(payload)
    assert header == (b"STDV", version, 16 + 4 * version, 0, stamp_us, 0, 10, len(rows), sequence if version == 2 else None)
    assert read == rows
    assert decode_stdv_points(payload).tolist() == rows
    ours = read_stdv_header(payload)
    assert (ours.version, ours.size, ours.stamp_us, ours.point_size, ours.points, ours.sequence) == (*header[1:3], stamp_us, 10, len(rows), header[8])


@given(any_point, st.integers(0, 5))
def test_a_point_is_written_at_its_place_and_nowhere_else(row, at):
    payload = np.full(30, 0xAA, np.uint8)
    write_stdv_point(*row, payload, 4 * at)
    assert struct.unpack_from("<hHhBBBB", payload, 4 * at) == row
    rest = np.ones(30, bool)
    rest[4 * at : 4 * at + 10] = False
    assert (payload[rest] == 0xAA).all()


@pytest.mark.parametrize("version", [1, 2])
def test_a_header_overwrites_exactly_its_own_bytes(version):
    payload = np.full(30, 0xAA, np.uint8)
    size = write_stdv_header(version, 5, 258, 2**32 + 3, payload)
    assert size == header_size(version)
    assert struct.unpack_from("<4sBBHQBBH", payload) == (b"STDV", version, size, 0, 5, 0, 10, 258)
    assert version == 1 or struct.unpack_from("<I", payload, 20) == (3,)
    assert (payload[size:] == 0xAA).all()


def test_the_time_of_a_point_is_the_headers_and_every_step_up_to_its_own():
    steps = [(0, 0, 0, 0, step, 0, 0) for step in (8, 0, 8, 255, 255)]
    np.testing.assert_array_equal(point_times_us(points(*steps), 2**40), 2**40 + np.array([8, 8, 16, 271, 526]))


WHOLE = encode_stdv_packet(points(ONE, ONE), stamp_us=1)


@pytest.mark.parametrize(
    ("payload", "fault"),
    [
        (b"", "an STDV packet must begin with STDV, got $"),
        (b"STDT" + WHOLE[4:], "an STDV packet must begin with STDV, got 53 54 44 54"),
        (WHOLE[:19], "an STDV packet must have a header of 20 bytes, got 19 bytes"),
        (WHOLE[:-1], "an STDV packet of 2 points of 10 bytes behind 24 bytes of header must be whole, got 43 bytes"),
        (WHOLE[:5] + b"\x13" + WHOLE[6:], "an STDV packet of 2 points of 10 bytes behind 19 bytes of header must be whole, got 44 bytes"),
        (WHOLE[:17] + b"\x09" + WHOLE[18:], "an STDV packet of 2 points of 9 bytes behind 24 bytes of header must be whole, got 44 bytes"),
        (WHOLE[:17] + b"\x0c" + WHOLE[18:] + bytes(9), "an STDV point must be 10 bytes, got 12"),
        (WHOLE[:18] + b"\xff\xff" + WHOLE[20:], "an STDV packet of 65535 points of 10 bytes"),
    ],
)
def test_an_incomplete_packet_is_refused_with_the_reason(payload, fault):
    with pytest.raises(PacketError, match=fault):
        decode_stdv_points(payload)


def test_bytes_behind_the_points_are_nobodys():
    np.testing.assert_array_equal(decode_stdv_points(WHOLE + b"more"), decode_stdv_points(WHOLE))
