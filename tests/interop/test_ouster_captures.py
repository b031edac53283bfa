"""Packets and metadata of real units: decoded and encoded again they are the same bytes, but for reserved ones."""

import json
from typing import NamedTuple

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.errors import PacketError
from hilsim.families.ouster.protocol.firmware import Footer, footer_of, pixel_shifts
from hilsim.families.ouster.protocol.headers import LIDAR_PACKET, field_values
from hilsim.families.ouster.protocol.imu import IMU_PACKET_SIZE, decode_imu_packets, encode_imu_packet
from hilsim.families.ouster.protocol.lidar import decode_lidar_packets, lidar_layout
from hilsim.families.ouster.protocol.metadata import metadata_document
from hilsim.families.ouster.protocol.metadata_reading import read_metadata
from hilsim.families.ouster.protocol.pixels import Pixels
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET
from tests.ouster_sensors import encoded


class Case(NamedTuple):
    """A sensor in a capture, its metadata, and how many lidar packets it sent."""

    capture: str
    metadata: str
    lidar: int
    imu: int


CASES = (
    Case("OS-2-128-U1_v2.3.0_1024x10.pcap", "OS-2-128-U1_v2.3.0_1024x10.json", 64, 10),
    Case("OS-0-32-U1_v2.2.0_1024x10.pcap", "OS-0-32-U1_v2.2.0_1024x10.json", 64, 10),
    Case("same_ports_nonlegacy.pcap", "same_ports_nonlegacy.1.json", 1, 2),
    Case("same_ports_nonlegacy.pcap", "same_ports_nonlegacy.2.json", 1, 2),
)
by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.metadata.removesuffix(".json"))

RESERVED_PIXEL_BYTES = {"RNG19_RFL8_SIG16_NIR16": (3,)}
"""Reserved bytes of a pixel that are not 0: an OS2 with firmware 2.3.0 sets bit 28, where LEGACY has its flags, of some pixels without a range."""


def read(capture, case):
    """Metadata, lidar packets ``uint8[n, size]`` and IMU packets ``uint8[n, 48]`` of one sensor."""
    metadata = read_metadata(capture(f"ouster/{case.metadata}").read_text())
    layout = lidar_layout(metadata.profile, metadata.beams.channels, metadata.footer)
    payloads = [bytes(datagram.payload) for datagram in CaptureFile(capture(f"ouster/{case.capture}"))]
    offset, bits = layout.header_fields[0].tolist()
    serial = int(metadata.serial).to_bytes(5, "little")
    at = int(layout.header_fields[3, 0])
    assert (offset, bits // 8) in {(0, 1), (0, 2)}
    lidar = [np.frombuffer(each, np.uint8) for each in payloads if len(each) == layout.size and each[at : at + 5] == serial]
    imu = [np.frombuffer(each, np.uint8) for each in payloads if len(each) == IMU_PACKET_SIZE]
    assert {len(each) for each in payloads} == {layout.size, IMU_PACKET_SIZE}
    return metadata, layout, np.stack(lidar), np.stack(imu)


def reserved_bytes(metadata, layout):
    """``bool[size]``: reserved bytes of a packet that may differ."""
    found = np.zeros(layout.size, bool)
    for byte in RESERVED_PIXEL_BYTES.get(metadata.lidar_profile, ()):
        for column in range(COLUMNS_PER_PACKET):
            first = layout.first_column + column * layout.column_size + layout.first_pixel + byte
            found[first : first + layout.channels * layout.pixel_size : layout.pixel_size] = True
    return found


@by_case
def test_every_lidar_packet_decoded_and_encoded_again_is_the_same_bytes(capture, case):
    metadata, layout, payloads, _ = read(capture, case)
    assert len(payloads) == case.lidar
    packets = decode_lidar_packets(payloads, metadata.profile, layout)
    may_differ = reserved_bytes(metadata, layout)
    for number, payload in enumerate(payloads):
        pixels = Pixels(*(values[number] for values in packets.pixels))
        again = encoded(layout, field_values(packets.headers[number]), field_values(packets.columns[number]), pixels)
        np.testing.assert_array_equal(again[~may_differ], payload[~may_differ])


@by_case
def test_reserved_bytes_have_one_bit_alone_of_pixels_without_a_range(capture, case):
    metadata, layout, payloads, _ = read(capture, case)
    ranges_mm = decode_lidar_packets(payloads, metadata.profile, layout).pixels.range_mm[:, 0]
    for byte in RESERVED_PIXEL_BYTES.get(metadata.lidar_profile, ()):
        columns = payloads[:, layout.first_column :][:, : COLUMNS_PER_PACKET * layout.column_size].reshape(len(payloads), COLUMNS_PER_PACKET, -1)
        found = columns[:, :, layout.first_pixel + byte :: layout.pixel_size]
        assert set(np.unique(found).tolist()) == {0, 0x10}
        assert not ranges_mm[found != 0].any()


@by_case
def test_headers_and_columns_are_those_of_the_sensors_metadata(capture, case):
    metadata, layout, payloads, _ = read(capture, case)
    packets = decode_lidar_packets(payloads, metadata.profile, layout)
    assert set(packets.headers["packet_type"].tolist()) == {LIDAR_PACKET}
    assert set(packets.headers["init_id"].tolist()) == {metadata.initialization_id}
    assert set(packets.headers["serial"].tolist()) == {int(metadata.serial)}
    assert (packets.columns["status"] == 1).all()
    first = packets.columns["measurement_id"][:, 0]
    assert (first % COLUMNS_PER_PACKET == 0).all()
    np.testing.assert_array_equal(packets.columns["measurement_id"] - first[:, None], np.tile(np.arange(COLUMNS_PER_PACKET), (len(payloads), 1)))
    if len(payloads) > 1:
        assert sorted(first.tolist()) == list(range(0, metadata.columns_per_frame, COLUMNS_PER_PACKET))
        assert (np.diff(packets.columns["timestamp_ns"].reshape(-1).astype(np.int64)) > 0).all()


@by_case
def test_every_imu_packet_decoded_and_encoded_again_is_the_same_bytes(capture, case):
    *_, payloads = read(capture, case)
    assert len(payloads) == case.imu
    for record, payload in zip(decode_imu_packets(payloads), payloads, strict=True):
        times_ns = np.array([record["diagnostic_ns"], record["accelerometer_ns"], record["gyroscope_ns"]], np.int64)
        again = np.full(IMU_PACKET_SIZE, 0xAA, np.uint8)
        encode_imu_packet(times_ns, record["acceleration_g"].astype(np.float32), record["rate_dps"].astype(np.float32), again)
        np.testing.assert_array_equal(again, payload)


@by_case
def test_a_second_return_that_there_is_not_is_zero(capture, case):
    metadata, layout, payloads, _ = read(capture, case)
    pixels = decode_lidar_packets(payloads, metadata.profile, layout).pixels
    if metadata.profile.returns == 2:
        missing = pixels.range_mm[:, 1] == 0
        assert missing.any()
        assert (pixels.range_mm[:, 1] != pixels.range_mm[:, 0])[~missing].all()


@by_case
def test_footers_are_those_of_the_firmware_and_no_others(capture, case):
    metadata, _, payloads, _ = read(capture, case)
    profile, channels = metadata.profile, metadata.beams.channels
    for footer in (Footer.ZERO, Footer.CONSTANT, Footer.CRC):
        layout = lidar_layout(profile, channels, footer)
        if footer is footer_of(metadata.firmware, profile.header):
            decode_lidar_packets(payloads, profile, layout)
        else:
            with pytest.raises(PacketError, match=rf"must have (CRC-64|footer) 0x\w+, got 0x\w+ at byte {layout.size - 8} of packet 0"):
                decode_lidar_packets(payloads, profile, layout)


@pytest.mark.parametrize("name", ["same_ports_nonlegacy.1.json", "same_ports_nonlegacy.2.json"])
def test_metadata_read_and_written_is_the_same_document(capture, name):
    text = capture(f"ouster/{name}").read_text()
    assert metadata_document(read_metadata(text)) == json.loads(text)


@by_case
def test_rows_shift_as_the_firmware_says(capture, case):
    metadata = read_metadata(capture(f"ouster/{case.metadata}").read_text())
    expected = pixel_shifts(metadata.beams.azimuth_deg, metadata.columns_per_frame, metadata.firmware, metadata.prod_line)
    more = 2 if metadata.prod_line == "OS-0-32-U1" else 0  # two columns more than the constant of other OS0
    assert metadata.pixel_shift_by_row == tuple(shift + more for shift in expected)
