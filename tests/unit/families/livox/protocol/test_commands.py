"""Control frames of a Livox: bytes written by hand from the layout, a round trip, and faults that name field and byte."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.families.livox.protocol.commands import (
    MAX_FRAME_BYTES,
    Command,
    ControlFrame,
    ReturnCode,
    counted,
    encode_frame,
    query_answer,
    read_frame,
    read_keys,
    read_pairs,
    search_answer,
)
from tests.livox_units import counted_keys, read_answered_pairs

SEARCH = "aa 00 18 00  01 00 00 00  00 00 00 00  00 00 00 00 00 00  a9 1f  00 00 00 00"
FOUND = (
    "aa 00 30 00  01 00 00 00  00 00 01 01  00 00 00 00 00 00  8a b7  5c 91 9b 4c"
    "00 09  34 37 4d 44 4b 30 30 30 30 30 30 30 30 31 00 00  7f 00 00 02  24 db"
)
START = "aa 00 21 00  05 00 00 00  00 01 00 00  00 00 00 00 00 00  90 d5  6f d5 e7 ad  01 00 00 00  1a 00 01 00 01"
KIND = "aa 00 20 00  06 00 00 00  01 01 01 01  00 00 00 00 00 00  e0 60  c5 af 29 38  00 01 00  10 80 01 00 01"
PAIRS = st.lists(st.tuples(st.integers(0, 65_535), st.binary(max_size=64)), max_size=12)


def frames():
    search = ControlFrame(command=Command.SEARCH, sequence=1)
    address = bytes((127, 0, 0, 2))
    return {
        SEARCH: search,
        FOUND: search.answer(search_answer(device_type=9, serial="47MDK000000001", address=address, command_port=56_100)),
        START: ControlFrame(command=Command.SET, sequence=5, data=counted([(0x1A, b"\x01")])),
        KIND: ControlFrame(command=Command.QUERY, sequence=6).answer(query_answer([(0x8010, b"\x01")])),
    }


@pytest.mark.parametrize("text", [SEARCH, FOUND, START, KIND])
def test_frames_have_the_bytes_of_the_layout(text):
    frame = frames()[text]
    assert encode_frame(frame).hex() == bytes.fromhex(text).hex()
    assert read_frame(bytes.fromhex(text)) == frame


@given(st.integers(0, 65_535), st.integers(0, 2**32 - 1), st.binary(max_size=MAX_FRAME_BYTES - 24), st.booleans(), st.booleans())
def test_a_frame_is_read_back(command, sequence, data, is_answer, is_from_sensor):
    frame = ControlFrame(command=command, sequence=sequence, data=data, is_answer=is_answer, is_from_sensor=is_from_sensor)
    assert read_frame(encode_frame(frame)) == frame


@given(PAIRS)
def test_keys_and_values_are_read_back(pairs):
    assert read_pairs(counted(pairs)) == read_answered_pairs(query_answer(pairs)) == pairs
    keys = [key for key, _ in pairs]
    assert read_keys(counted_keys(keys)) == keys


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_read_or_refused(payload):
    for read in (read_frame, read_pairs, read_keys):
        try:
            read(payload)
        except ValueError:
            continue


@pytest.mark.parametrize(
    ("byte", "value", "fault"),
    [
        (0, 0xAB, "start of frame (byte 0) must be 0xAA, got 0xAB"),
        (1, 1, "version (byte 1) must be 0, got 1"),
        (2, 0x22, "length (byte 2) must be the payload's 33, and at most 1400, got 34"),
        (10, 2, "command type (byte 10) must be 0 or 1, got 2"),
        (11, 7, "sender (byte 11) must be 0 or 1, got 7"),
        (8, 1, "CRC-16 (byte 18) must be 0x"),
        (18, 0, "CRC-16 (byte 18) must be 0xD590, got 0xD500"),
        (20, 0, "CRC-32 (byte 20) must be 0xADE7D56F, got 0xADE7D500"),
        (32, 2, "CRC-32 (byte 20) must be 0x"),
    ],
)
def test_a_wrong_byte_is_named(byte, value, fault):
    payload = bytearray.fromhex(START)
    payload[byte] = value
    with pytest.raises(ValueError, match=re.escape(fault)):
        read_frame(bytes(payload))


@pytest.mark.parametrize(
    ("read", "data", "fault"),
    [
        (read_frame, b"\xaa\x00", "a control frame must be 24 bytes or more, got 2"),
        (read_pairs, b"\x01", "a list of keys must be 4 bytes or more, got 1"),
        (read_pairs, bytes.fromhex("0200 0000 1a00 0100 01"), "key 2 of 2 (byte 9) must be 4 bytes and its value, got 0 bytes"),
        (read_pairs, bytes.fromhex("0100 0000 1a00 0200 01"), "value of key 0x001A (byte 8) must be 2 bytes, got 1"),
        (read_pairs, bytes.fromhex("0000 0000 1a00"), "keys must be 0, got 2 bytes more (byte 4)"),
        (read_keys, bytes.fromhex("0200 0000 1a00"), "a query of 2 keys must be 8 bytes, got 6"),
    ],
)
def test_lists_that_are_not_whole_are_refused(read, data, fault):
    with pytest.raises(ValueError, match=re.escape(fault)):
        read(data)


def test_fields_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="command must be 0 to 65535, got 65536; sequence must be"):
        ControlFrame(command=1 << 16, sequence=-1)
    assert ReturnCode.READ_ONLY == 0x22
