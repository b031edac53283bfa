"""GPS packets against their published layout."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.families.hesai.protocol.gps import ROOM, XT_ROOM, is_gps, write_gps
from hilsim.families.hesai.recognition import HesaiKind, recognise
from hilsim.families.velodyne.recognition import recognise as velodyne

SENTENCE = b"$GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6A\r\n"
TIME_NS = 1_795_012_345_678_901_000
"""2026-11-18 14:32:25.678901."""


def packet(room, sentence=SENTENCE, utc_ns=TIME_NS, valid=1, locked=1):
    payload = np.full(512, 0x55, np.uint8)
    write_gps(utc_ns, room, valid, locked, np.frombuffer(sentence or b"x", np.uint8), len(sentence), payload)
    return payload.tobytes()


@pytest.mark.parametrize(("room", "us"), [(ROOM, 678_901), (XT_ROOM, 0)])
def test_every_field_is_at_its_place(room, us):
    payload = packet(room)
    assert payload[:14] == b"\xff\xee" + b"621181" + b"522341"  # low digits first
    assert int.from_bytes(payload[14:18], "little") == us
    assert payload[18 : 18 + room] == SENTENCE.ljust(room, b"\0")
    assert payload[18 + room : 506] == b"\xdf" * (488 - room)
    assert payload[506:] == b"A\x01\0\0\0\0"
    assert packet(room, valid=0, locked=0)[506:508] == b"V\0"


@given(st.integers(946_684_800, 4_102_444_799), st.binary(max_size=128), st.sampled_from([ROOM, XT_ROOM]))
def test_what_is_written_is_recognised_and_read_again(second, sentence, room):
    payload = packet(room, sentence, second * 1_000_000_000)
    assert recognise(payload) is HesaiKind.GPS
    assert velodyne(payload) is None
    digits = [int(payload[at : at + 2][::-1]) for at in range(2, 14, 2)]
    date = np.datetime64(second, "s").item()
    assert digits == [date.year % 100, date.month, date.day, date.second, date.minute, date.hour]
    assert payload[18 : 18 + room] == sentence[:room].ljust(room, b"\0")


def test_other_packets_are_none():
    assert not is_gps(packet(ROOM)[:-1])
    assert not is_gps(b"\xee\xff" + packet(ROOM)[2:])
    assert not is_gps(bytes(512))
