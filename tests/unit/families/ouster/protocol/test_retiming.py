"""Recorded Ouster packets get other times and frame ids; all other bytes stay."""

import numpy as np
import pytest

from hilsim.emulator.replaying import retiming_of
from hilsim.emulator.retime import StampClock
from hilsim.families.ouster.protocol.imu import decode_imu_measurements, decode_imu_packets, imu_layout
from hilsim.families.ouster.protocol.lidar import decode_lidar_packets
from hilsim.families.ouster.protocol.profiles import PROFILES, HeaderKind
from hilsim.families.ouster.recognition import OusterKind
from hilsim.families.ouster.replaying import frame_of, with_frame_id
from hilsim.protocols.recognise import recognise
from tests.ouster_sensors import columns_of, encoded, header_of, layout_of, random_pixels, sensor
from tests.unit.emulator.test_retime import retime
from tests.unit.families.ouster.protocol.test_recognition import imu_packet, lidar_packet, measurements_packet

CLOCK = StampClock(shown_ns=1_700_000_000_000_000_000, utc_ns=0)


def packet_of(name, version):
    metadata = sensor(name, 16, version)
    pixels = random_pixels(metadata.profile, 16, np.random.default_rng(1))
    return metadata, encoded(layout_of(metadata), header_of(metadata), columns_of(metadata.profile, 480, start_ns=515_816_892_880), pixels)


@pytest.mark.parametrize(("name", "version"), [(name, version) for name in PROFILES for version in ("2.3.0", "2.5.2", "3.1.0")])
def test_columns_move_together_on_the_grid_and_the_footer_is_that_of_the_firmware(name, version):
    metadata, before = packet_of(name, version)
    after = before.copy()
    retime(OusterKind.LIDAR, CLOCK, 5_000_000_013, after)
    layout = layout_of(metadata)
    first, second = (decode_lidar_packets(each[np.newaxis], metadata.profile, layout) for each in (before, after))  # the footers are checked
    moved = second.columns["timestamp_ns"].astype(np.int64) - first.columns["timestamp_ns"].astype(np.int64)
    assert np.unique(moved).size == 1
    assert moved[0, 0] % 40 == 0
    assert 0 <= CLOCK.shown_ns + 5_000_000_013 - int(second.columns["timestamp_ns"][0, 0]) < 40
    np.testing.assert_array_equal(first.headers, second.headers)
    for earlier, later in zip(first.pixels, second.pixels, strict=True):
        np.testing.assert_array_equal(earlier, later)


def test_the_three_times_of_a_legacy_imu_packet_move_together():
    before = np.frombuffer(imu_packet(), np.uint8)
    after = before.copy()
    retime(OusterKind.IMU, CLOCK, 80, after)
    first, second = (decode_imu_packets(each[np.newaxis])[0] for each in (before, after))
    moved = {int(second[name]) - int(first[name]) for name in ("diagnostic_ns", "accelerometer_ns", "gyroscope_ns")}
    assert len(moved) == 1
    assert 0 <= CLOCK.shown_ns + 80 - int(second["accelerometer_ns"]) < 40
    np.testing.assert_array_equal(before[24:], after[24:])


@pytest.mark.parametrize("kind", [HeaderKind.STANDARD, HeaderKind.FUSA])
def test_measurements_of_a_newer_imu_packet_move_together_with_a_valid_footer(kind):
    before = np.frombuffer(measurements_packet(kind), np.uint8)
    after = before.copy()
    retime(OusterKind.IMU, CLOCK, 0, after)
    layout = imu_layout(8, kind, sensor(version="3.2.0", header=kind).footer)
    first, second = (decode_imu_measurements(each[np.newaxis], kind, layout) for each in (before, after))
    moved = second.measurements["time_ns"].astype(np.int64) - first.measurements["time_ns"].astype(np.int64)
    assert np.unique(moved).size == 1
    assert second.nmea_ns[0] == 0  # no sentence, no time


@pytest.mark.parametrize(("name", "largest"), [("LEGACY", 65_535), ("RNG19_RFL8_SIG16_NIR16", 65_535), ("FUSA_RNG15_RFL8_NIR8_DUAL", (1 << 32) - 1)])
def test_a_frame_id_is_read_and_written_where_the_header_has_it(name, largest):
    metadata, payload = packet_of(name, "3.1.0")
    assert frame_of(payload.tobytes()) == (4711, 480, 0 if name == "LEGACY" else int(metadata.serial))
    for frame_id, expected in ((7, 7), (largest, largest), (largest + 1, 0)):
        changed = np.frombuffer(with_frame_id(payload.tobytes(), frame_id), np.uint8)
        packets = decode_lidar_packets(changed[np.newaxis], metadata.profile, layout_of(metadata), checks_footer=False)
        assert packets.headers["frame_id"][0] == expected
    if name == "LEGACY":
        places = [20 * number + number * 12 * 16 + 10 for number in range(16)]
        changed = with_frame_id(payload.tobytes(), 0x0203)
        assert {changed[at : at + 2] for at in places} == {b"\x03\x02"}


def test_an_imu_packet_without_header_has_no_frame_id():
    assert frame_of(imu_packet()) is None
    assert with_frame_id(imu_packet(), 5) == imu_packet()
    assert frame_of(measurements_packet()).number == 4711


def test_a_packet_is_placed_by_its_first_time():
    assert [
        retiming_of(recognise(each), each).stamp_at for each in (lidar_packet(), lidar_packet("LEGACY"), imu_packet(), measurements_packet())
    ] == [32, 0, 8, 132]


def test_a_fusa_header_whose_initialisation_id_ends_in_zero_is_recognised_by_its_serial_number():
    payload = lidar_packet("FUSA_RNG15_RFL8_NIR8_DUAL", initialization_id=0xABCD00)
    assert frame_of(payload) == (4711, 480, 122247000785)
