"""Point packets of Pandar40P, Pandar64 and QT64 against their layouts, and against a recording of a real 40P."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.capture.pcap import CaptureFile
from hilsim.errors import PacketError
from hilsim.families.hesai.protocol.pandar import PANDAR40P, PANDAR64, QT64, Tail, read_packet, utc_ns, write_packet
from hilsim.families.hesai.recognition import HesaiKind, recognise

MODELS = {model.name: model for model in (PANDAR40P, PANDAR64, QT64)}
TIME_NS = 1_504_668_896_123_456_000
"""2017-09-06 03:34:56.123456."""


def packet(model, azimuths, distance, reflectivity, tail):
    payload = np.full(model.size(is_counted=tail.sequence >= 0), 0x55, np.uint8)
    write_packet(model.layout, np.asarray(azimuths, np.int64), np.asarray(distance, np.int32), np.asarray(reflectivity, np.uint8), tail, payload, 0)
    return payload.tobytes()


def some_packet(model, sequence=7):
    count = np.arange(model.layout.blocks * model.layout.channels).reshape(model.layout.blocks, -1)
    tail = Tail(0x1234, 5, 0x7172, 1, 0, 0x39, 600, TIME_NS, sequence)
    return packet(model, 100 + 20 * np.arange(model.layout.blocks), count * 97 % 65_536, count % 256, tail)


@pytest.mark.parametrize(
    ("model", "sequence", "size", "tail_at", "year"),
    [
        (PANDAR40P, -1, 1262, 1240, 17),
        (PANDAR40P, 7, 1266, 1240, 17),
        (PANDAR64, -1, 1194, 1172, 117),
        (PANDAR64, 7, 1198, 1172, 117),
        (QT64, 7, 1072, 1044, 117),
    ],
)
def test_every_field_is_at_its_place(model, sequence, size, tail_at, year):
    payload = some_packet(model, sequence)
    assert len(payload) == size
    form = "<HBHxBxxxHIBB6B" if model is QT64 else "<HBHBHHIBB6B"
    values = struct.unpack_from(form, payload, tail_at)
    expected = (0x1234, 5, 0x7172, 1, *(() if model is QT64 else (0,)), 600, 123_456, 0x39, 0x42, year, 9, 6, 3, 34, 56)
    assert values == expected
    if sequence >= 0:
        assert int.from_bytes(payload[-4:], "little") == 7
    second = {"Pandar40P": 126, "Pandar64": 8 + 194, "QT64": 12 + 258}[model.name]
    assert struct.unpack_from("<HHB", payload, second) == (120, model.layout.channels * 97, model.layout.channels)
    start = {"Pandar40P": "ffee6400", "Pandar64": "eeff4006000400006400", "QT64": "eeff03010000400401040201" + "6400"}[model.name]
    assert payload.hex().startswith(start)


@given(st.sampled_from(sorted(MODELS)), st.integers(0, 2**32 - 1), st.booleans())
def test_what_is_written_is_read_again(name, seed, is_counted):
    model, draws = MODELS[name], np.random.default_rng(seed)
    shape = (model.layout.blocks, model.layout.channels)
    azimuths, distance, reflectivity = draws.integers(0, 36_000, shape[0]), draws.integers(0, 65_536, shape), draws.integers(0, 256, shape)
    stamp_ns = (seed % 1_000_000_000 + 1_000_000_000) * 1_000_000_000 + 999_999_000
    tail = Tail(seed & 0xFFFF, seed & 0xFF, seed >> 16, 0, 0, 0x38, seed & 0x7FF, stamp_ns, seed if is_counted or model is QT64 else -1)
    found = read_packet(packet(model, azimuths, distance, reflectivity, tail))
    assert found["blocks"]["azimuth"].tolist() == azimuths.tolist()
    assert found["blocks"]["units"]["distance"].tolist() == distance.tolist()
    assert found["blocks"]["units"]["reflectivity"].tolist() == reflectivity.tolist()
    assert (found["tail"]["value"], found["tail"]["identity"], found["tail"]["speed_rpm"]) == (tail.value, tail.identity, tail.speed_rpm)
    assert utc_ns(found) == stamp_ns


@pytest.mark.parametrize(
    ("model", "at", "text"),
    [
        (PANDAR40P, 124, "Pandar40P packet: block 1 (byte 124) must begin with ffee, got 00ee"),
        (PANDAR64, 2, "Pandar64 packet: header (byte 2) must be 0x40, got 0x00"),
        (QT64, 2, "QT64 packet: header (byte 2) must be 0x03, got 0x00"),
        (QT64, 1061, "QT64 packet: factory byte (byte 1061) must be 0x42, got 0x00"),
        (PANDAR40P, 1255, "Pandar40P packet: factory byte (byte 1255) must be 0x42, got 0x00"),
    ],
)
def test_a_fault_is_named_by_field_and_byte(model, at, text):
    payload = bytearray(some_packet(model))
    payload[at] = 0
    with pytest.raises(PacketError) as raised:
        read_packet(bytes(payload))
    assert str(raised.value) == text
    assert recognise(bytes(payload)) is None
    assert recognise(some_packet(model)) is HesaiKind.PANDAR
    with pytest.raises(PacketError, match="must be of 1072, 1194, 1198, 1262, 1266 bytes, got 1000"):
        read_packet(bytes(1000))


def test_a_recording_of_a_real_40p_is_encoded_byte_by_byte(capture):
    count, identities = 0, set()
    for datagram in CaptureFile(capture("hesai/hesai_pandar40p_dual_600rpm.pcap")):
        found = read_packet(datagram.payload)
        tail, blocks = found["tail"], found["blocks"]
        reserved = int(tail["reserved"][0]) | int(tail["reserved"][1]) << 8
        status = int(tail["value"]), int(tail["identity"]), reserved, int(tail["shutdown"]), int(tail["error"])
        own = Tail(*status, int(tail["mode"]), int(tail["speed_rpm"]), utc_ns(found), -1)
        assert packet(PANDAR40P, blocks["azimuth"], blocks["units"]["distance"], blocks["units"]["reflectivity"], own) == datagram.payload
        identities.add(own.identity)
        count += 1
    assert (count, len(identities)) == (1439, 23)
