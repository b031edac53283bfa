"""The sensor information packet against the table that was measured on the vendor's libraries."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.families.cepton.protocol.info import (
    INFO_PACKET_DTYPE,
    INFO_PACKET_SIZE,
    InfoPacket,
    encode_info_packet,
    read_info_packet,
    write_sync_offset,
)

SAID = {
    "model": 24,
    "serial": 4711,
    "firmware": (3, 2, 1, 9),
    "model_name": "X90-generic",
    "part_number": 900_123,
    "power_up_us": 1_700_000_000_000_001,
    "sync_offset_us": -37_000_000,
    "returns": 2,
}
GOLDEN = bytes.fromhex(
    "494e465a 58080000 18000000 67120000 03020109"  # INFZ, 88, version 1 and no blocks, model, serial, firmware
    "5839302d 67656e65 72696300 00000000 00000000 00000000 00000000"  # X90-generic
    "1bbc0d00 03020109 00000000 00000000"  # part, firmware
    "01401e18 240a0600 c06ccbfd ffffffff"  # power-up, offset
    "00000000 00020000"
)


def encoded(**changed):
    return encode_info_packet(**(SAID | changed)).tobytes()


def test_the_packet_has_these_bytes():
    payload = encode_info_packet(**SAID)
    assert (payload.dtype, payload.shape, payload.tobytes()) == (np.uint8, (88,), GOLDEN)


def test_every_field_is_where_it_was_measured():
    places = {name: offset for name, (_, offset) in INFO_PACKET_DTYPE.fields.items()}
    assert INFO_PACKET_DTYPE.itemsize == INFO_PACKET_SIZE == 88
    assert {name: place for name, place in places.items() if not name.startswith("reserved")} == {
        "signature": 0,
        "header_size": 4,
        "version_and_blocks": 5,
        "faults": 7,
        "model": 8,
        "serial": 12,
        "firmware": 16,
        "model_name": 20,
        "part_number": 48,
        "firmware_again": 52,
        "power_up_us": 64,
        "sync_offset_us": 72,
        "sync_drift": 80,
        "returns": 85,
    }


@given(
    st.fixed_dictionaries(
        {
            "model": st.integers(0, 2**16 - 1),
            "serial": st.integers(0, 2**32 - 1),
            "firmware": st.tuples(*[st.integers(0, 255)] * 4),
            "model_name": st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=27),
            "part_number": st.integers(0, 2**32 - 1),
            "power_up_us": st.integers(0, 2**63 - 1),
            "sync_offset_us": st.integers(-(2**63), 2**63 - 1),
            "returns": st.sampled_from([1, 2]),
        }
    )
)
def test_what_is_written_is_read_and_no_block_is_ever_announced(said):
    payload = encode_info_packet(**said).tobytes()
    assert read_info_packet(payload) == InfoPacket(**said, blocks=0)
    assert payload[5] == 8
    reserved = [payload[6], payload[7], *payload[10:12], *payload[56:64], *payload[80:85], *payload[86:88]]
    assert not any(reserved)


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"model": 65_536}, "model must be 0 to 65535, got 65536"),
        ({"model": -1}, "model must be 0 to 65535, got -1"),
        ({"serial": 2**32}, "serial must be 0 to 4294967295, got 4294967296"),
        ({"firmware": (1, 2, 3, 256)}, r"firmware must be four numbers of 0 to 255, got \(1, 2, 3, 256\)"),
        ({"firmware": (1, 2, 3)}, r"firmware must be four numbers of 0 to 255, got \(1, 2, 3\)"),
        ({"model_name": ""}, "model_name must be 1 to 27 printable ASCII characters, got ''"),
        ({"model_name": "n" * 28}, "model_name must be 1 to 27 printable ASCII characters, got 'n{28}'"),
        ({"model_name": "Vistá"}, "model_name must be 1 to 27 printable ASCII characters, got 'Vistá'"),
        ({"model_name": "a\0b"}, "model_name must be 1 to 27 printable ASCII characters, got 'a.x00b'"),
        ({"part_number": -1}, "part_number must be 0 to 4294967295, got -1"),
        ({"power_up_us": -1}, r"power_up_us must be 0 to 2\^63 - 1, got -1"),
        ({"sync_offset_us": 2**63}, r"sync_offset_us must be -2\^63 to 2\^63 - 1, got 9223372036854775808"),
        ({"returns": 0}, "returns must be 1 or 2, got 0"),
        ({"returns": 3}, "returns must be 1 or 2, got 3"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(changed, fault):
    with pytest.raises(ValueError, match=f"^{fault}$"):
        encoded(**changed)


def test_all_faults_are_reported_at_once():
    with pytest.raises(ValueError, match=r"^model must .*; returns must be 1 or 2, got 9$"):
        encoded(model=-1, returns=9)


def changed_at(place, value):
    return GOLDEN[:place] + bytes([value]) + GOLDEN[place + 1 :]


@pytest.mark.parametrize(
    "payload",
    [b"", b"INFZ", GOLDEN[:-1], b"INFO" + GOLDEN[4:], changed_at(4, 87), changed_at(4, 89), changed_at(5, 0), changed_at(5, 16)],
    ids=["nothing", "name alone", "cut short", "older generation", "short header", "header longer than the packet", "version 0", "version 2"],
)
def test_an_incomplete_version_1_packet_gives_nothing(payload):
    assert read_info_packet(payload) is None


def test_blocks_behind_the_common_header_are_reported_and_not_read():
    longer = changed_at(5, 8 | 5) + b"\xff" * 40
    assert read_info_packet(longer) == InfoPacket(**SAID, blocks=5)


def test_a_name_without_a_zero_byte_is_read_whole():
    payload = bytearray(GOLDEN)
    struct.pack_into("28s", payload, 20, b"\xe9" * 28)
    assert read_info_packet(bytes(payload)).model_name == "é" * 28


@given(st.binary(max_size=200).map(lambda tail: b"INFZ" + tail))
def test_whatever_follows_the_name_is_read_or_refused_without_fault(payload):
    told = read_info_packet(payload)
    assert (told is None) or (len(payload) >= 88 and payload[5] >> 3 == 1)


@given(st.integers(-(2**63), 2**63 - 1))
def test_the_offset_of_the_clock_is_written_into_a_packet_that_is_there(offset_us):
    packet = encode_info_packet(**SAID)
    write_sync_offset(offset_us, packet)
    assert read_info_packet(packet.tobytes()) == InfoPacket(**(SAID | {"sync_offset_us": offset_us}), blocks=0)
