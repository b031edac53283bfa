"""The measured INFZ packet: its table, golden bytes, round trip, and what it must never contain."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.packets.cepton_info import INFO_PACKET_DTYPE, InfoPacket, encode_info_packet, read_info_packet, write_sync_offset
from hilsim.packets.recognise import PacketKind, recognise
from hilsim.sensor.cepton_specs import MODEL_NAME_MAX

GIVEN = {
    "model": 3,
    "serial": 0x01020304,
    "firmware": (3, 51, 0, 255),
    "model_name": "HR80W-like",
    "part_number": 0xFFFFFFFF,
    "power_up_us": 1_767_225_600_000_000,
    "sync_offset_us": -2,
    "returns": 2,
}

packets = st.builds(
    InfoPacket,
    model=st.integers(0, 2**16 - 1),
    serial=st.integers(0, 2**32 - 1),
    firmware=st.tuples(*[st.integers(0, 255)] * 4),
    model_name=st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=27),
    part_number=st.integers(0, 2**32 - 1),
    power_up_us=st.integers(-(2**63), 2**63 - 1),
    sync_offset_us=st.integers(-(2**63), 2**63 - 1),
    returns=st.integers(1, 255),
)


def encoded(**changes):
    return encode_info_packet(InfoPacket(**GIVEN | changes)).tobytes()


def by_struct(payload):
    """The measured table, without our layout."""
    model, serial = struct.unpack_from("<HxxI", payload, 8)
    name = payload[20:48].split(b"\0")[0].decode()
    (part,) = struct.unpack_from("<I", payload, 48)
    power_up_us, sync_us = struct.unpack_from("<qq", payload, 64)
    assert payload[16:20] == payload[52:56]
    return InfoPacket(
        model=model,
        serial=serial,
        firmware=tuple(payload[16:20]),
        model_name=name,
        part_number=part,
        power_up_us=power_up_us,
        sync_offset_us=sync_us,
        returns=payload[85],
    )


@pytest.mark.parametrize(
    ("field", "offset"),
    [
        ("signature", 0),
        ("header_size", 4),
        ("version", 5),
        ("model", 8),
        ("serial", 12),
        ("firmware", 16),
        ("model_name", 20),
        ("part_number", 48),
        ("firmware_again", 52),
        ("power_up_us", 64),
        ("sync_offset_us", 72),
        ("returns", 85),
    ],
)
def test_each_field_is_where_it_was_measured(field, offset):
    assert INFO_PACKET_DTYPE.fields[field][1] == offset
    assert INFO_PACKET_DTYPE.itemsize == 88


def test_a_packet_has_its_golden_bytes():
    assert encoded().hex(" ", 8) == " ".join(
        [
            "494e465a58080000",
            "0300000004030201",
            "033300ff48523830",
            "572d6c696b650000",
            *["0000000000000000"] * 2,
            "ffffffff033300ff",
            "0000000000000000",
            (1_767_225_600_000_000).to_bytes(8, "little").hex(),
            "feffffffffffffff",
            "0000000000020000",
        ]
    )
    assert recognise(encoded()) is PacketKind.CEPTON_INFZ


@given(packets)
def test_what_is_written_is_read_back_by_our_reader_and_by_plain_struct(packet):
    payload = encode_info_packet(packet).tobytes()
    assert by_struct(payload) == packet
    assert read_info_packet(payload) == packet
    assert read_info_packet(payload + b"more") == packet


@given(packets)
def test_no_packet_ever_has_block_bits_which_crash_the_vendors_sdk(packet):
    payload = encode_info_packet(packet)
    assert (payload.size, payload[4], payload[5]) == (88, 88, 8)
    assert payload[5] & 0b111 == 0


@given(packets)
def test_bytes_whose_meaning_is_not_known_are_zero(packet):
    payload = encode_info_packet(packet)
    for unknown in (slice(6, 8), slice(10, 12), slice(56, 64), slice(80, 85), slice(86, 88)):
        assert not payload[unknown].any()


@given(packets, st.integers(-(2**63), 2**63 - 1))
def test_the_sync_offset_can_be_written_alone(packet, sync_offset_us):
    payload = encode_info_packet(packet)
    write_sync_offset(sync_offset_us, payload)
    np.testing.assert_array_equal(payload, encode_info_packet(InfoPacket(**vars(packet) | {"sync_offset_us": sync_offset_us})))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        encoded()[:87],
        b"INFO" + encoded()[4:],
        encoded()[:5] + b"\x00" + encoded()[6:],  # version 0 has another layout
        encoded()[:5] + b"\x10" + encoded()[6:],
        encoded()[:20] + b"x" * 28 + encoded()[48:],  # a name without an end
    ],
)
def test_what_is_of_another_layout_is_not_read(payload):
    assert read_info_packet(payload) is None


@given(st.binary(min_size=84, max_size=90).map(lambda tail: b"INFZ\x58\x08" + tail))
def test_whatever_the_bytes_reading_them_raises_nothing(payload):
    found = read_info_packet(payload)
    assert found is None or by_name(payload) == found.model_name


def by_name(payload):
    return payload[20:48].split(b"\0")[0].decode("ascii", "replace").replace("\N{REPLACEMENT CHARACTER}", "?")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"model": 65_536}, "model must be 0 to 65535, got 65536"),
        ({"serial": -1}, "serial must be 0 to 4294967295, got -1"),
        ({"firmware": (1, 2, 3, 256)}, r"firmware must be four numbers of 0 to 255, got \(1, 2, 3, 256\)"),
        ({"model_name": "x" * 28}, 'model_name must be ASCII of at most 27 characters, got "x{28}"'),
        ({"model_name": "Hörsel"}, 'model_name must be ASCII of at most 27 characters, got "Hörsel"'),
        ({"part_number": 2**32}, "part_number must be 0 to 4294967295, got 4294967296"),
        ({"power_up_us": 2**63}, "power_up_us must fit 64 bits, got 9223372036854775808"),
        ({"sync_offset_us": -(2**63) - 1}, "sync_offset_us must fit 64 bits, got -9223372036854775809"),
        ({"returns": 0}, "returns must be 1 to 255, got 0"),
        ({"model": -1, "returns": 256}, "model must be 0 to 65535, got -1; returns must be 1 to 255, got 256"),
    ],
)
def test_rules_name_their_field(changes, fault):
    with pytest.raises(ValueError, match=fault):
        InfoPacket(**GIVEN | changes)


def test_the_longest_model_name_fits():
    assert MODEL_NAME_MAX == 27
    assert read_info_packet(encoded(model_name="x" * MODEL_NAME_MAX)).model_name == "x" * 27
