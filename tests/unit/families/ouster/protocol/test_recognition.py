"""Ouster packets are recognised by their bytes, and their size tells profiles and channels."""

import itertools

import numpy as np
import pytest

from hilsim.families.ouster.protocol.headers import COLUMNS, HeaderField
from hilsim.families.ouster.protocol.imu import encode_imu_measurements, encode_imu_packet, imu_layout
from hilsim.families.ouster.protocol.lidar import lidar_layout
from hilsim.families.ouster.protocol.pixels import allocate_pixels
from hilsim.families.ouster.protocol.profiles import PROFILES, HeaderKind
from hilsim.families.ouster.protocol.recognition import CHANNELS, FORMS, describe_fits, fits_of, header_kind, read_header_field
from hilsim.families.ouster.recognition import OusterKind
from hilsim.protocols.recognise import OtherKind, recognise
from tests.ouster_sensors import columns_of, encoded, header_of, layout_of, sensor

CASES = [(name, channels) for name in PROFILES for channels in CHANNELS]
NTP = bytes.fromhex("240106e8000002dd0000043a4c16bd2aeae9c1b0d5a4c6a0eae9c2cf3a9e7b00eae9c2cf3b000000eae9c2cf3b0c49ba")


def lidar_packet(name="RNG19_RFL8_SIG16_NIR16", channels=32, first=480, **changes):
    metadata = sensor(name, channels, **changes)
    return encoded(
        layout_of(metadata), header_of(metadata), columns_of(metadata.profile, first), allocate_pixels(metadata.profile, channels)
    ).tobytes()


def imu_packet(times_ns=(5_000_000_000, 7_000_213_920, 7_000_435_140)):
    payload = np.zeros(48, np.uint8)
    encode_imu_packet(np.array(times_ns), np.array([0.01, 0.1, 1.0], np.float32), np.array([0.2, 0.4, -0.5], np.float32), payload)
    return payload.tobytes()


def measurements_packet(header=HeaderKind.STANDARD, count=8):
    metadata = sensor(version="3.2.0", header=header)
    layout, payload = imu_layout(count, metadata.profile.header, metadata.footer), np.zeros(132 + 36 * count + 32, np.uint8)
    columns = np.stack([1_000 + 1_562_500 * np.arange(count), 15 + 16 * np.arange(count), np.ones(count, np.int64)], axis=1)
    values = np.ones((count, 3), np.float32)
    encode_imu_measurements(layout, header_of(metadata, packet_type=2), 0, np.zeros(0, np.uint8), columns, values, values, payload)
    return payload.tobytes()


@pytest.mark.parametrize(("name", "channels"), CASES)
def test_lidar_packets_of_every_profile_are_recognised_with_their_header(name, channels):
    payload = lidar_packet(name, channels)
    assert recognise(payload) is OusterKind.LIDAR
    kind = header_kind(payload)
    assert kind is PROFILES[name].header
    assert (name, channels) in fits_of(len(payload), kind)
    if kind is not HeaderKind.NONE:
        assert read_header_field(payload, kind, HeaderField.SERIAL) == 122247000785


def test_both_headers_of_firmware_3_2_are_recognised():
    payload = lidar_packet(version="3.2.0", header=HeaderKind.FUSA)
    assert (recognise(payload), header_kind(payload)) == (OusterKind.LIDAR, HeaderKind.FUSA)
    assert fits_of(len(payload), HeaderKind.FUSA) == (("RNG19_RFL8_SIG16_NIR16", 32),)


def test_imu_packets_of_both_forms_are_recognised():
    assert [recognise(each) for each in (imu_packet(), measurements_packet(), measurements_packet(HeaderKind.FUSA))] == [OusterKind.IMU] * 3


@pytest.mark.parametrize("column", range(16))
def test_a_lidar_packet_with_one_wrong_measurement_id_is_still_recognised(column):
    payload = bytearray(lidar_packet())
    at = 32 + column * FORMS[len(payload)].column_size + 8
    payload[at : at + 2] = b"\xff\xff"
    assert recognise(bytes(payload)) is OusterKind.LIDAR


def _changed(payload, at, value):
    return payload[:at] + bytes((value,)) + payload[at + 1 :]


@pytest.mark.parametrize(
    "payload",
    [
        NTP,
        bytes(48),
        imu_packet((5, 7_000_000_000, 9_000_000_000)),
        _changed(imu_packet(), 35, 0x7F),
        _changed(lidar_packet(), 0, 2),
        bytes(6464),
        lidar_packet()[:-1],
        _changed(measurements_packet(), 0, 3),
        _changed(measurements_packet(), 142, 2),
    ],
    ids=["NTP", "zeros", "times apart", "huge value", "type of IMU", "zeros of a known size", "a byte short", "zone packet", "unknown status"],
)
def test_similar_packets_are_not_recognised_as_ouster(payload):
    assert recognise(payload) is OtherKind.OTHER


def test_sizes_are_those_of_the_layouts():
    for profile, channels in itertools.product(PROFILES.values(), CHANNELS):
        footer = sensor(profile.name, channels).footer
        layout = lidar_layout(profile, channels, footer)
        form = FORMS[layout.size]
        assert (form.first_column, form.column_size) == (layout.first_column, layout.column_size)
        assert form.has_header == (COLUMNS[profile.header].frame_id is None)


def test_the_text_on_an_unknown_sensor_names_what_its_size_allows_and_asks_for_metadata():
    text = describe_fits(8448, HeaderKind.STANDARD)
    assert text == (
        "8448 bytes fit RNG19_RFL8_SIG16_NIR16_DUAL with 32 channels or RNG15_RFL8_NIR8 with 128 channels "
        "or RNG15_RFL8_NIR8_DUAL with 64 channels: give the sensor's metadata (JSON)"
    )
