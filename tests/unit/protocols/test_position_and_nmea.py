"""Position packets and the $GPRMC sentence."""

import datetime as dt

import dpkt
import numpy as np
import pynmeagps
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilsim.errors import PacketError
from hilsim.protocols.nmea import GPRMC_CAPACITY, civil_date, write_gprmc
from hilsim.protocols.velodyne.position import (
    POSITION_PACKET_DTYPE,
    POSITION_PACKET_SIZE,
    PpsState,
    decode_position_packets,
    encode_position_packet,
)


def gprmc(utc, *, valid=True, latitude=36.829130930, longitude=-2.40757154667, speed=0.034 * 1852 / 3600, course=212.5):
    out = np.zeros(GPRMC_CAPACITY, np.uint8)
    size = write_gprmc(int(utc.timestamp()), valid, latitude, longitude, speed, course, out)
    return out[:size].tobytes()


def test_the_sentence_of_a_real_sensor_comes_out_to_the_byte():
    utc = dt.datetime(2016, 1, 21, 8, 18, 2, tzinfo=dt.UTC)
    assert gprmc(utc) == b"$GPRMC,081802.00,A,3649.7478558,N,00224.4542928,W,0.034,212.5,210116,0.0,E,A*2E\r\n"


@given(
    st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2099, 12, 31)),  # noqa: DTZ001 - made aware below
    st.floats(-89.99, 89.99),
    st.floats(-179.99, 179.99),
    st.floats(0, 120),
    st.floats(0, 360),
)
@settings(max_examples=60, deadline=None)
def test_an_independent_parser_reads_back_time_date_position_and_speed(when, latitude, longitude, speed, course):
    utc = when.replace(tzinfo=dt.UTC, microsecond=0)
    message = pynmeagps.NMEAReader.parse(gprmc(utc, latitude=latitude, longitude=longitude, speed=speed, course=course))
    assert (message.time, message.date.strftime("%d%m%y")) == (utc.time(), utc.strftime("%d%m%y"))
    assert message.lat == pytest.approx(latitude, abs=1e-8)
    assert message.lon == pytest.approx(longitude, abs=1e-8)
    assert message.spd == pytest.approx(speed * 3600 / 1852, abs=6e-4)
    assert (message.cog - course + 180) % 360 - 180 == pytest.approx(0, abs=0.051)


@pytest.mark.parametrize(("degrees", "signs"), [(0.0, "NE"), (1e-9, "NE"), (-1e-9, "SW"), (45.0, "NE"), (-45.0, "SW")])
def test_the_equator_is_north_and_the_meridian_of_greenwich_is_east(degrees, signs):
    fields = gprmc(dt.datetime(2020, 1, 1, tzinfo=dt.UTC), latitude=degrees, longitude=degrees).decode().split(",")
    assert fields[4] + fields[6] == signs


def test_an_invalid_receiver_says_v():
    assert gprmc(dt.datetime(2020, 1, 1, tzinfo=dt.UTC), valid=False).split(b",")[2] == b"V"


@pytest.mark.parametrize("day", [0, 59, 60, 11016, 11017, 19782, 47540])
def test_civil_dates_agree_with_the_calendar(day):
    expected = dt.date(1970, 1, 1) + dt.timedelta(days=day)
    assert tuple(civil_date(day)) == (expected.year, expected.month, expected.day)


def test_position_fields_stand_at_the_manuals_offsets():
    offsets = {name: POSITION_PACKET_DTYPE.fields[name][1] for name in ("temperature_top", "timestamp", "pps", "nmea", "reserved_1")}
    assert offsets == {"temperature_top": 187, "timestamp": 198, "pps": 202, "nmea": 206, "reserved_1": 334}


def test_every_real_position_packet_is_reproduced_from_its_stamp_pps_and_sentence(capture):
    with capture("vlp16_strongest_gps.pcap").open("rb") as file:
        payloads = [frame[42:] for _, frame in dpkt.pcap.Reader(file) if len(frame) == 42 + POSITION_PACKET_SIZE]
    assert len(payloads) == 57
    for payload, packet in zip(payloads, decode_position_packets(np.frombuffer(b"".join(payloads), np.uint8).reshape(-1, 512)), strict=True):
        sentence = packet["nmea"].tobytes().rstrip(b"\0")
        assert packet["pps"] == PpsState.LOCKED
        out = np.full(POSITION_PACKET_SIZE, 0xAA, np.uint8)
        encode_position_packet(int(packet["timestamp"]), int(packet["pps"]), np.frombuffer(sentence, np.uint8).copy(), len(sentence), out)
        assert out.tobytes() == payload


def test_without_a_receiver_only_the_stamp_is_set():
    out = np.full(POSITION_PACKET_SIZE, 0xAA, np.uint8)
    encode_position_packet(0x01020304, int(PpsState.ABSENT), np.zeros(GPRMC_CAPACITY, np.uint8), 0, out)
    assert np.flatnonzero(out).tolist() == [198, 199, 200, 201]


def test_decode_position_refuses_another_size():
    with pytest.raises(PacketError, match="must be 512 bytes each"):
        decode_position_packets(np.zeros((2, 100), np.uint8))
