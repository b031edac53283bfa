"""Position packets and the $GPRMC sentence."""

import datetime as dt

import dpkt
import numpy as np
import pynmeagps
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilsim.errors import PacketError
from hilsim.families.velodyne.protocol.position import (
    POSITION_PACKET_DTYPE,
    POSITION_PACKET_SIZE,
    decode_imu,
    decode_position_packets,
    encode_imu_module,
    encode_position_packet,
)
from hilsim.protocols.nmea import GPRMC_CAPACITY, civil_date, write_gprmc
from hilsim.sensor.specs import PpsState
from tests.depth import examples


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
@settings(max_examples=examples(60))
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


def imu(*modules):
    payload = np.zeros(POSITION_PACKET_SIZE, np.uint8)
    for number, (gyro_dps, temperature_c, accel_x_g, accel_y_g) in enumerate(modules):
        encode_imu_module(number, gyro_dps, temperature_c, accel_x_g, accel_y_g, payload)
    return payload


def test_imu_words_stand_at_the_known_offsets_with_their_kind_and_sign():
    payload = imu((-0.09766, 25.1453, 0.001221, -0.001221), (0.0, 25.0, 1.0, 0.0), (1e6, 25.0, -1e6, 1e6))
    assert payload[14:22].tobytes() == bytes.fromhex("ff0f 0110 0120 ff3f")
    assert payload[22:30].tobytes() == bytes.fromhex("0000 0010 3323 0030")  # 1 / 0.001221 is 819
    assert payload[30:38].tobytes() == bytes.fromhex("ff07 0010 0128 ff37")  # held at 2047 counts
    assert np.flatnonzero(payload).min() == 14
    assert np.flatnonzero(payload).max() == 37


@given(st.tuples(st.floats(-199, 199), st.floats(-100, 200), st.floats(-2.4, 2.4), st.floats(-2.4, 2.4)))
@settings(max_examples=examples(60))
def test_imu_values_come_back_within_half_a_count(module):
    back = decode_imu(imu(module, module, module)[None])[0]
    assert (np.abs(back - module) <= [0.0489, 0.0727, 0.000611, 0.000611]).all()


def test_imu_words_of_every_real_packet_come_out_to_the_byte(capture):
    with capture("hdl32e_strongest.pcap").open("rb") as file:
        payloads = np.stack([np.frombuffer(frame[42:], np.uint8) for _, frame in dpkt.pcap.Reader(file) if len(frame) == 42 + POSITION_PACKET_SIZE])
    assert len(payloads) == 299
    for payload, modules in zip(payloads, decode_imu(payloads), strict=True):
        np.testing.assert_array_equal(imu(*modules)[14:38], payload[14:38])
    up_g = np.median(decode_imu(payloads)[:, :2, 2])
    assert up_g == pytest.approx(1.0, abs=0.06)  # a vehicle at rest: the first two modules' accelerometers X look up


def test_an_imu_word_of_another_kind_is_named_by_packet_and_byte():
    payloads = np.stack([imu(*[(0.0, 25.0, 0.0, 0.0)] * 3)] * 3)
    payloads[1, 27] = 0x50
    with pytest.raises(PacketError, match="position packet 1 must have an IMU word of kind 2 at byte 26, got 0x5000"):
        decode_imu(payloads)


def test_decode_position_refuses_another_size():
    with pytest.raises(PacketError, match="must be 512 bytes each"):
        decode_position_packets(np.zeros((2, 100), np.uint8))
