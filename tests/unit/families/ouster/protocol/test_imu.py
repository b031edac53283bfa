"""IMU packets of both forms: bytes by ``struct``, a round trip, and what is refused."""

import struct

import numpy as np
import pytest

from hilsim.errors import PacketError
from hilsim.families.ouster.protocol.firmware import Footer
from hilsim.families.ouster.protocol.headers import field_values
from hilsim.families.ouster.protocol.imu import (
    IMU_PACKET_SIZE,
    decode_imu_measurements,
    decode_imu_packets,
    encode_imu_measurements,
    encode_imu_packet,
    imu_layout,
)
from hilsim.families.ouster.protocol.profiles import HeaderKind
from hilsim.protocols.crc64 import crcs_of
from tests.ouster_sensors import header_of, sensor

ACCELERATION, RATE = np.array([0.008300781, -0.11083984, 1.0209961], np.float32), np.array([0.18310547, -300.5, -0.0], np.float32)
SENTENCE = b"$GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6A"


def test_a_legacy_packet_is_48_bytes_with_three_times_and_six_floats():
    times_ns = np.array([765_719_656_040, 2**62 + 5, 765_720_093_360])
    payload = np.full(50, 0xAA, np.uint8)
    encode_imu_packet(times_ns, ACCELERATION, RATE, payload)
    assert payload.tobytes() == struct.pack("<QQQ6f", *times_ns.tolist(), *ACCELERATION.tolist(), *RATE.tolist()) + b"\xaa\xaa"
    (read,) = decode_imu_packets(payload[None, :48])
    assert [read[name] for name in ("diagnostic_ns", "accelerometer_ns", "gyroscope_ns")] == times_ns.tolist()
    np.testing.assert_array_equal(read["acceleration_g"], ACCELERATION)
    np.testing.assert_array_equal(read["rate_dps"], RATE)


def test_a_legacy_packet_of_another_size_is_refused():
    with pytest.raises(PacketError, match=r"Ouster IMU packet of LEGACY must be 48 bytes, got an array of uint8 of shape \(2, 47\)"):
        decode_imu_packets(np.zeros((2, IMU_PACKET_SIZE - 1), np.uint8))


def measurements(header=HeaderKind.STANDARD, footer=Footer.CRC, nmea=SENTENCE, count=8):
    layout = imu_layout(count, header, footer)
    columns = np.stack([10**18 + 1_562_500 * np.arange(count), 31 + 32 * np.arange(count), np.ones(count, np.int64)], axis=1)
    acceleration = np.outer(np.arange(1, count + 1), ACCELERATION).astype(np.float32)
    rate = np.outer(np.arange(1, count + 1), RATE).astype(np.float32)
    payload = np.full(layout.size, 0xAA, np.uint8)
    values = header_of(sensor(), frame_id=30_002, packet_type=2, alert_flags=0x8C)
    encode_imu_measurements(layout, values, 77 if nmea else 0, np.frombuffer(nmea, np.uint8), columns, acceleration, rate, payload)
    return layout, values, columns, acceleration, rate, payload


def test_a_packet_of_eight_measurements_is_452_bytes_laid_out_as_published():
    layout, _, columns, acceleration, rate, payload = measurements()
    assert layout.size == 452
    expected = struct.pack("<HH3s5sB19x", 2, 30_002, (0xABCDE).to_bytes(3, "little"), (122247000785).to_bytes(5, "little"), 0x8C)
    expected += struct.pack("<Q85s7x", 77, SENTENCE)
    for number, (time_ns, measurement_id, status) in enumerate(columns.tolist()):
        expected += struct.pack("<QHH6f", time_ns, measurement_id, status, *acceleration[number].tolist(), *rate[number].tolist())
    assert payload[:-8].tobytes() == expected + bytes(24)
    assert int(payload[-8:].view("<u8")[0]) == int(crcs_of(payload[None])[0])


@pytest.mark.parametrize(("header", "footer"), [(HeaderKind.STANDARD, Footer.CRC), (HeaderKind.FUSA, Footer.ZERO)])
def test_measurements_decode_to_what_was_encoded(header, footer):
    layout, values, columns, acceleration, rate, payload = measurements(header, footer)
    read = decode_imu_measurements(payload[None], header, layout)
    np.testing.assert_array_equal(field_values(read.headers[0]), values)
    assert (read.nmea, read.nmea_ns.tolist()) == ((SENTENCE,), [77])
    assert read.measurements.shape == (1, 8)
    for column, name in enumerate(("time_ns", "measurement_id", "status")):
        np.testing.assert_array_equal(read.measurements[name][0], columns[:, column])
    np.testing.assert_array_equal(read.measurements["acceleration_mps2"][0], acceleration)
    np.testing.assert_array_equal(read.measurements["rate_rps"][0], rate)


def test_a_sentence_of_more_than_85_bytes_is_cut_and_none_is_zero():
    long = decode_imu_measurements(measurements(nmea=b"x" * 100)[-1][None], HeaderKind.STANDARD, imu_layout(8, HeaderKind.STANDARD, Footer.CRC))
    assert long.nmea == (b"x" * 85,)
    assert not measurements(nmea=b"")[-1][32:132].any()


def test_measurements_of_another_type_or_with_a_wrong_crc_are_refused():
    layout, *_, payload = measurements()
    what = "Ouster IMU packet of ACCEL32_GYRO32_NMEA with 8 measurements"
    changed = payload.copy()
    changed[200] ^= 1
    with pytest.raises(PacketError, match=f"{what} must have CRC-64 0x.* at byte 444 of packet 1"):
        decode_imu_measurements(np.stack([payload, changed]), HeaderKind.STANDARD, layout)
    changed[0] = 1
    with pytest.raises(PacketError, match=f"{what} must have type 2, got 1 at byte 0 of packet 0"):
        decode_imu_measurements(changed[None], HeaderKind.STANDARD, layout)
    with pytest.raises(PacketError, match=f"{what} must be 452 bytes"):
        decode_imu_measurements(payload[None, :-36], HeaderKind.STANDARD, layout)


@pytest.mark.parametrize(
    ("count", "header", "fault"),
    [
        (0, HeaderKind.STANDARD, "measurements must be at least 1, got 0"),
        (2000, HeaderKind.STANDARD, "must be at most 65507 bytes, got 72164"),
        (8, HeaderKind.NONE, "must have header and footer, got none"),
    ],
)
def test_a_form_that_cannot_be_is_refused(count, header, fault):
    with pytest.raises(ValueError, match=fault):
        imu_layout(count, header, Footer.CRC)
