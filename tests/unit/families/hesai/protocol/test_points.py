"""Point packets against their published layouts, read here by ``struct``, and against recordings of real units."""

import datetime as dt
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.capture.pcap import CaptureFile
from hilsim.errors import PacketError
from hilsim.families.hesai.protocol.models import BY_NAME, PANDAR40P, PANDAR64, QT64, XT16, XT32, XT32M
from hilsim.families.hesai.protocol.points import (
    BY_SIZE,
    ReturnMode,
    Tail,
    layout_of,
    model_of,
    read_packet,
    utc_ns,
    write_block,
    write_header,
    write_tail,
)
from hilsim.families.hesai.recognition import HesaiKind, recognise
from tests.compiled import compiled_only

RECORDINGS = {
    "XT32": ("hesai/hesai_xt32_dual_600rpm.pcap", 2000),
    "XT16": ("hesai/hesai_xt16_dual_600rpm.pcap", 1626),
    "Pandar40P": ("hesai/hesai_pandar40p_dual_600rpm.pcap", 1439),
}
TIME_NS = 1_564_024_769_718_973_000
"""2019-07-25 03:19:29.718973."""


def packet(model, azimuths, distance, reflectivity, tail, **layout):
    """A packet of arrays ``[blocks]``, ``[blocks, channels]`` and ``[blocks, channels]``."""
    made = layout_of(model, **layout)
    payload = np.full(model.dtype(is_counted=made.is_counted).itemsize, 0x55, np.uint8)
    at = write_header(made, payload, 0)
    for block, azimuth in enumerate(azimuths):
        at = write_block(made, int(azimuth), np.asarray(distance[block], np.int32), np.asarray(reflectivity[block], np.uint8), payload, at)
    write_tail(made, tail, payload, at)
    return payload.tobytes()


def some_packet(model, mode=ReturnMode.LAST_STRONGEST, **layout):
    count = np.arange(model.blocks * model.channels).reshape(model.blocks, -1)
    tail = Tail(np.frombuffer(model.status[-1], np.uint8), 1, int(mode), 599, TIME_NS, 301_676)
    return packet(model, 1800 + 18 * (np.arange(model.blocks) // 2), count * 97 % 65_536, count % 256, tail, **layout)


@pytest.mark.parametrize(("model", "size", "tail_at"), [(XT32, 1080, 1052), (XT16, 568, 540), (XT32M, 820, 792)])
def test_every_field_of_an_xt_is_at_its_place(model, size, tail_at):
    payload = some_packet(model)
    assert len(payload) == size
    assert payload[:12] == bytes([0xEE, 0xFF, 6, 1, 0, 0, model.channels, model.blocks, 1, 4, 2, 1])
    block = 2 + 4 * model.channels
    assert struct.unpack_from("<HHBB", payload, 12 + 3 * block) == (1818, 3 * model.channels * 97 % 65_536, 3 * model.channels % 256, 0xFF)
    assert struct.unpack_from("<HBB", payload, 12 + 3 * block - 4) == ((3 * model.channels - 1) * 97 % 65_536, (3 * model.channels - 1) % 256, 0xFF)
    status, shutdown, mode, speed, date, us, factory, number = struct.unpack_from("<9sBBH6sIBI", payload, tail_at)
    assert (status, shutdown, mode, speed) == (model.status[0], 1, 0x39, 599)
    assert (list(date), us, factory, number) == ([119, 7, 25, 3, 19, 29], 718_973, 0x42, 301_676)


@pytest.mark.parametrize(
    ("model", "is_counted", "size", "tail_at", "year", "status"),
    [
        (PANDAR40P, False, 1262, 1240, 19, (18_244, 22, 0x7172)),
        (PANDAR40P, True, 1266, 1240, 19, (18_244, 22, 0x7172)),
        (PANDAR64, False, 1194, 1172, 119, (18_244, 22, 0x6E6E)),
        (PANDAR64, True, 1198, 1172, 119, (18_244, 22, 0x6E6E)),
        (QT64, True, 1072, 1044, 119, (0, 18, 0)),
    ],
)
def test_every_field_of_the_others_is_at_its_place(model, is_counted, size, tail_at, year, status):
    payload = some_packet(model, is_counted=is_counted)
    assert len(payload) == size
    form = "<HBHxBxxxHIBB6B" if model is QT64 else "<HBHBHHIBB6B"
    values = struct.unpack_from(form, payload, tail_at)
    assert values == (*status, 1, *(() if model is QT64 else (0,)), 599, 718_973, 0x39, 0x42, year, 7, 25, 3, 19, 29)
    if is_counted:
        assert int.from_bytes(payload[-4:], "little") == 301_676
    second = {"Pandar40P": 126, "Pandar64": 8 + 194, "QT64": 12 + 258}[model.name]
    assert struct.unpack_from("<HHB", payload, second) == (1800, model.channels * 97, model.channels)
    start = {"Pandar40P": "ffee0807", "Pandar64": "eeff4006000400000807", "QT64": "eeff03010000400401040201" + "0807"}[model.name]
    assert payload.hex().startswith(start)
    if model is QT64:
        assert set(read_packet(payload)["blocks"]["units"]["confidence"].flat) == {0}


def test_a_packet_has_its_golden_tail_and_header():
    payload = some_packet(XT32)
    assert payload[:22].hex() == "eeff060100002008010402010807" + "000000ff610001ff"
    assert payload[1052:].hex() == "000086f107830100010139570277071903131d7df80a00426c9a0400"


@given(
    st.sampled_from(sorted(BY_NAME)),
    st.sampled_from(ReturnMode),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.datetimes(dt.datetime(2001, 1, 1), dt.datetime(2069, 12, 31)),  # noqa: DTZ001 - UTC's own date
    st.booleans(),
)
def test_what_is_written_is_read_again(name, mode, seed, number, moment, is_counted):
    model, draws = BY_NAME[name], np.random.default_rng(seed)
    is_counted |= not name.startswith("Pandar")
    shape = (model.blocks, model.channels)
    azimuths, distance = draws.integers(0, 36_000, model.blocks), draws.integers(0, 65_536, shape)
    reflectivity, status = draws.integers(0, 256, shape), draws.integers(0, 256, model.tail.status).astype(np.uint8)
    time_us = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # noqa: DTZ001
    payload = packet(
        model, azimuths, distance, reflectivity, Tail(status, seed & 1, int(mode), seed & 0xFFF, time_us * 1000, number), is_counted=is_counted
    )
    assert model_of(payload) is model
    found = read_packet(payload)
    assert found["blocks"]["azimuth"].tolist() == azimuths.tolist()
    assert found["blocks"]["units"]["distance"].tolist() == distance.tolist()
    assert found["blocks"]["units"]["reflectivity"].tolist() == reflectivity.tolist()
    assert (found["tail"]["speed_rpm"], found["tail"]["mode"], found["tail"]["shutdown"]) == (seed & 0xFFF, mode, seed & 1)
    assert ("sequence" in found["tail"].dtype.names) == is_counted
    if is_counted:
        assert found["tail"]["sequence"] == number
    assert found["tail"]["status"].tolist() == status.tolist()
    assert found["tail"]["utc"].tolist() == [moment.year - model.years_from, moment.month, moment.day, moment.hour, moment.minute, moment.second]
    assert utc_ns(found["tail"].reshape(1)).tolist() == [time_us * 1000]


@pytest.mark.parametrize(
    ("model", "returns", "block", "channel", "after_ns"),
    [
        (XT32, 1, 0, 1, 6000 - 350_000),
        (XT32, 2, 7, 32, 6000 + 31 * 1512),
        (PANDAR40P, 2, 0, 8, -28_580 - 4 * 55_560 - 54_670),
        (PANDAR40P, 1, 9, 40, -28_580 - 3620),
        (PANDAR64, 1, 5, 51, -42_580 - 3620),
        (PANDAR64, 2, 1, 12, -42_580 - 2 * 55_560 - 54_668),
        (QT64, 1, 0, 1, 25_710 + 2310),
        (QT64, 2, 3, 56, 25_710 + 166_667 + 119_600),
    ],
)
def test_lasers_fire_when_the_vendors_sdk_says(model, returns, block, channel, after_ns):
    assert model.block_ns(returns)[block] + model.firing_ns[channel - 1] == after_ns


def test_a_date_of_counted_seconds_is_read():
    tail = np.zeros(1, BY_SIZE[1080][1]["tail"])
    tail["utc"], tail["us"] = [[0, *(1_795_000_000).to_bytes(5, "big")]], 7
    assert utc_ns(tail).tolist() == [1_795_000_000_000_007_000]


@pytest.mark.parametrize(
    ("model", "at", "value", "text"),
    [
        (XT32, 0, 0, "header (byte 0) of a XT32 must be 0xee, got 0x00"),
        (XT32, 2, 1, "header (byte 2) of a XT32 must be 0x06, got 0x01"),
        (XT32, 6, 40, "header (byte 6) of a XT32 must be 0x20, got 0x28"),
        (XT32, 9, 2, "header (byte 9) of a XT32 must be 0x04, got 0x02"),
        (XT32, 10, 0, "returns (byte 10) must be 1 to 3, got 0"),
        (XT32, 11, 0, "header (byte 11) of a XT32 must be 0x01, got 0x00"),
        (XT32, 1062, 0, "return mode (byte 1062) must be one of 0x33, 0x37, 0x38, 0x39, 0x3b, 0x3c, got 0x00"),
        (PANDAR40P, 124, 0, "block 1 (byte 124) must begin with ffee, got 00ee"),
        (PANDAR40P, 1255, 0, "factory byte (byte 1255) must be 0x42, got 0x00"),
        (PANDAR64, 2, 0, "header (byte 2) of a Pandar64 must be 0x40, got 0x00"),
        (QT64, 2, 0, "header (byte 2) of a QT64 must be 0x03, got 0x00"),
        (QT64, 1061, 0, "factory byte (byte 1061) must be 0x42, got 0x00"),
    ],
)
def test_a_fault_is_named_by_field_and_byte(model, at, value, text):
    payload = bytearray(some_packet(model))
    assert recognise(bytes(payload)) is HesaiKind.POINTS
    payload[at] = value
    with pytest.raises(PacketError) as raised:
        read_packet(bytes(payload))
    assert str(raised.value) == f"Hesai packet: {text}"
    assert recognise(bytes(payload)) is None


def test_a_packet_of_another_size_is_none():
    with pytest.raises(PacketError, match="must be of 568, 820, 1072, 1080, 1194, 1198, 1262, 1266 bytes, got 1000"):
        read_packet(bytes(1000))


@compiled_only
@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings_of_real_units_are_encoded_byte_by_byte(name, capture):
    file, packets = RECORDINGS[name]
    count, statuses = 0, set()
    for datagram in CaptureFile(capture(file)):
        found, model = read_packet(datagram.payload), BY_NAME[name]
        tail, blocks = found["tail"], found["blocks"]
        assert model_of(datagram.payload) is model
        is_counted = "sequence" in tail.dtype.names
        own = Tail(
            tail["status"].copy(),
            int(tail["shutdown"]),
            int(tail["mode"]),
            int(tail["speed_rpm"]),
            int(utc_ns(tail.reshape(1))[0]),
            int(tail["sequence"]) if is_counted else 0,
        )
        units = blocks["units"]
        assert packet(model, blocks["azimuth"], units["distance"], units["reflectivity"], own, is_counted=is_counted) == datagram.payload
        statuses.add(bytes(tail["status"][2 if model.status_rounds else 0 :]))
        count += 1
    assert (count, statuses) == (packets, {each[2 if model.status_rounds else 0 :] for each in model.status})
