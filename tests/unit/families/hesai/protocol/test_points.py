"""Point packets of the XT series against their published layout, read here by ``struct``, and against recordings of real units."""

import datetime as dt
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.capture.batches import CaptureBatches
from hilsim.errors import PacketError
from hilsim.families.hesai.protocol.models import BY_NAME, XT16, XT32, XT32M
from hilsim.families.hesai.protocol.points import (
    TAIL_DTYPE,
    Head,
    ReturnMode,
    Tail,
    model_of,
    packet_size,
    read_packet,
    utc_ns,
    write_block,
    write_header,
    write_tail,
)

RECORDINGS = {"XT32": "hesai/hesai_xt32_dual_600rpm.pcap", "XT16": "hesai/hesai_xt16_dual_600rpm.pcap"}
TIME_NS = 1_564_024_769_718_973_000
"""2019-07-25 03:19:29.718973."""


def packet(model, azimuths, distance, reflectivity, tail, first_return=1, returns=2):
    """A packet of arrays ``[blocks]``, ``[blocks, channels]`` and ``[blocks, channels]``."""
    payload = np.full(packet_size(model), 0x55, np.uint8)
    at = write_header(Head(model.channels, model.blocks, first_return, returns), payload, 0)
    for block, azimuth in enumerate(azimuths):
        at = write_block(int(azimuth), np.asarray(distance[block], np.int32), np.asarray(reflectivity[block], np.uint8), payload, at)
    write_tail(tail, payload, at)
    return payload.tobytes()


def some_packet(model, mode=ReturnMode.LAST_STRONGEST):
    count = np.arange(model.blocks * model.channels).reshape(model.blocks, -1)
    tail = Tail(np.frombuffer(model.status, np.uint8), 0, int(mode), 599, TIME_NS, 301_676)
    return packet(model, 1800 + 18 * (np.arange(model.blocks) // 2), count * 97 % 65_536, count % 256, tail)


@pytest.mark.parametrize(("model", "size", "tail_at"), [(XT32, 1080, 1052), (XT16, 568, 540), (XT32M, 820, 792)])
def test_every_field_is_at_its_place(model, size, tail_at):
    payload = some_packet(model)
    assert len(payload) == size
    assert payload[:12] == bytes([0xEE, 0xFF, 6, 1, 0, 0, model.channels, model.blocks, 1, 4, 2, 1])
    block = 2 + 4 * model.channels
    assert struct.unpack_from("<HHBB", payload, 12 + 3 * block) == (1818, 3 * model.channels * 97 % 65_536, 3 * model.channels % 256, 0xFF)
    assert struct.unpack_from("<HBB", payload, 12 + 3 * block - 4) == ((3 * model.channels - 1) * 97 % 65_536, (3 * model.channels - 1) % 256, 0xFF)
    status, shutdown, mode, speed, date, us, factory, number = struct.unpack_from("<9sBBH6sIBI", payload, tail_at)
    assert (status, shutdown, mode, speed) == (model.status, 0, 0x39, 599)
    assert (list(date), us, factory, number) == ([119, 7, 25, 3, 19, 29], 718_973, 0x42, 301_676)


def test_a_packet_has_its_golden_tail_and_header():
    payload = some_packet(XT32)
    assert payload[:22].hex() == "eeff060100002008010402010807" + "000000ff610001ff"
    assert payload[1052:].hex() == "000086f107830100010039570277071903131d7df80a00426c9a0400"


@given(
    st.sampled_from(sorted(BY_NAME)),
    st.sampled_from(ReturnMode),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.datetimes(dt.datetime(1971, 1, 1), dt.datetime(2150, 1, 1)),  # noqa: DTZ001 - UTC's own date
)
def test_what_is_written_is_read_again(name, mode, seed, number, moment):
    model, draws = BY_NAME[name], np.random.default_rng(seed)
    shape = (model.blocks, model.channels)
    azimuths, distance = draws.integers(0, 36_000, model.blocks), draws.integers(0, 65_536, shape)
    reflectivity, status = draws.integers(0, 256, shape), draws.integers(0, 256, 9).astype(np.uint8)
    time_us = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # noqa: DTZ001
    tail = Tail(status, seed & 1, int(mode), seed & 0xFFF, time_us * 1000, number)
    payload = packet(model, azimuths, distance, reflectivity, tail)
    assert model_of(payload) is model
    found = read_packet(payload)
    assert found["blocks"]["azimuth"].tolist() == azimuths.tolist()
    assert found["blocks"]["units"]["distance"].tolist() == distance.tolist()
    assert found["blocks"]["units"]["reflectivity"].tolist() == reflectivity.tolist()
    assert (found["tail"]["speed_rpm"], found["tail"]["mode"], found["tail"]["sequence"]) == (seed & 0xFFF, mode, number)
    assert found["tail"]["status"].tolist() == status.tolist()
    assert found["tail"]["utc"].tolist() == [moment.year - 1900, moment.month, moment.day, moment.hour, moment.minute, moment.second]
    assert utc_ns(found["tail"].reshape(1)).tolist() == [time_us * 1000]


def test_a_date_of_counted_seconds_is_read():
    tail = np.zeros(1, TAIL_DTYPE)
    tail["utc"], tail["us"] = [[0, *(1_795_000_000).to_bytes(5, "big")]], 7
    assert utc_ns(tail).tolist() == [1_795_000_000_000_007_000]


@pytest.mark.parametrize(
    ("at", "value", "text"),
    [
        (0, 0, "bytes 0 to 3 must be eeff0601, got 00ff0601"),
        (2, 1, "bytes 0 to 3 must be eeff0601, got eeff0101"),
        (6, 40, "lasers (byte 6) and blocks (byte 7) must be 32 and 8, 16 and 8, or 32 and 6, got 40 and 8"),
        (7, 6, "packet of 32 lasers and 6 blocks must be 820 bytes, got 1080"),
        (9, 2, "unit of distance (byte 9) must be 4, got 2"),
        (10, 0, "returns (byte 10) must be 1 to 3, got 0"),
        (11, 0, "flags (byte 11) must be 1, got 0"),
        (1062, 0, "return mode (byte 1062) must be one of 0x33, 0x37, 0x38, 0x39, 0x3b, 0x3c, got 0x00"),
    ],
)
def test_a_fault_is_named_by_field_and_byte(at, value, text):
    payload = bytearray(some_packet(XT32))
    payload[at] = value
    with pytest.raises(PacketError) as raised:
        read_packet(bytes(payload))
    assert text in str(raised.value)


@pytest.mark.parametrize("model", [XT32, XT16], ids=lambda model: model.name)
def test_recordings_of_real_units_are_encoded_byte_by_byte(model, capture):
    count = 0
    for batch in CaptureBatches(capture(RECORDINGS[model.name])):
        for start, size in zip(batch.start.tolist(), batch.size.tolist(), strict=True):
            payload = batch.data[start : start + size].tobytes()
            found = read_packet(payload)
            tail, blocks = found["tail"], found["blocks"]
            own = Tail(
                np.frombuffer(model.status, np.uint8),
                int(tail["shutdown"]),
                int(tail["mode"]),
                int(tail["speed_rpm"]),
                int(utc_ns(tail.reshape(1))[0]),
                int(tail["sequence"]),
            )
            assert packet(model, blocks["azimuth"], blocks["units"]["distance"], blocks["units"]["reflectivity"], own) == payload
            count += 1
    assert count == {"XT32": 2000, "XT16": 1626}[model.name]
