"""Lidar packets: every byte against a plain packing by the published table, a round trip, and what is refused."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilsim.errors import PacketError
from hilsim.families.ouster.protocol.firmware import FOOTER_CONSTANT, Footer
from hilsim.families.ouster.protocol.headers import COLUMN_DTYPE, HEADER_DTYPE, ColumnField, HeaderField, field_values
from hilsim.families.ouster.protocol.lidar import decode_lidar_packets, encode_lidar_packet, lidar_layout
from hilsim.families.ouster.protocol.pixels import allocate_pixels
from hilsim.families.ouster.protocol.profiles import PROFILES, FieldKind, HeaderKind
from tests import ouster_sensors
from tests.depth import examples
from tests.ouster_sensors import columns_of, encoded, header_of, layout_of, random_pixels

SINGLE, LOW = "RNG19_RFL8_SIG16_NIR16", "RNG15_RFL8_NIR8"

# (name, return, bit offset, width, scale) of each field, from the published tables and not from hilsim's
TABLES = {
    "LEGACY": [("range_mm", 0, 0, 20, 1), ("flags", 0, 28, 4, 1), ("reflectivity", 0, 32, 8, 1), ("signal", 0, 48, 16, 1), ("near_ir", 0, 64, 16, 1)],
    SINGLE: [
        ("range_mm", 0, 0, 19, 1),
        ("flags", 0, 19, 5, 1),
        ("reflectivity", 0, 32, 8, 1),
        ("signal", 0, 48, 16, 1),
        ("near_ir", 0, 64, 16, 1),
        ("window", 0, 88, 8, 1),
    ],
    f"{SINGLE}_DUAL": [
        ("range_mm", 0, 0, 19, 1),
        ("flags", 0, 19, 5, 1),
        ("reflectivity", 0, 24, 8, 1),
        ("range_mm", 1, 32, 19, 1),
        ("flags", 1, 51, 5, 1),
        ("reflectivity", 1, 56, 8, 1),
        ("signal", 0, 64, 16, 1),
        ("signal", 1, 80, 16, 1),
        ("near_ir", 0, 96, 16, 1),
        ("window", 0, 120, 8, 1),
    ],
    LOW: [("range_mm", 0, 0, 15, 8), ("flags", 0, 15, 1, 1), ("reflectivity", 0, 16, 8, 1), ("near_ir", 0, 24, 8, 16)],
}
TABLES[f"{LOW}_DUAL"] = [
    *TABLES[LOW],
    ("range_mm", 1, 32, 15, 8),
    ("flags", 1, 47, 1, 1),
    ("reflectivity", 1, 48, 8, 1),
    ("window", 0, 56, 8, 1),
]
TABLES[f"FUSA_{LOW}_DUAL"] = TABLES[f"{LOW}_DUAL"]
WORDS = {"LEGACY": 3, SINGLE: 3, f"{SINGLE}_DUAL": 4, LOW: 1, f"{LOW}_DUAL": 2, f"FUSA_{LOW}_DUAL": 2}
HEADER = {
    "frame_id": 0x0703,
    "init_id": 0x6C7C76,
    "serial": 122201000998,
    "alert_flags": 0x98,
    "shutdown_countdown_s": 30,
    "limiting_countdown_s": 29,
    "thermal_shutdown": 1,
    "shot_limiting": 9,
}


def plain_pixel(name, pixels, column, channel):
    """Bytes of one pixel, by Python's integers."""
    number = 0
    for field, number_of_return, bit, width, scale in TABLES[name]:
        value = int(getattr(pixels, field)[number_of_return, column, channel]) // scale
        assert value < 1 << width
        number |= value << bit
    return number.to_bytes(4 * WORDS[name], "little")


def plain_packet(name, columns, pixels, header=b"", *, frame_id=0):
    """Bytes before the footer, by ``struct``."""
    packet = bytearray(header)
    for number, (stamp, measurement, status, encoder) in enumerate(columns.tolist()):
        body = b"".join(plain_pixel(name, pixels, number, channel) for channel in range(pixels.range_mm.shape[2]))
        if name == "LEGACY":
            packet += struct.pack("<QHHI", stamp, measurement, frame_id, encoder) + body + struct.pack("<I", status)
        else:
            packet += struct.pack("<QHH", stamp, measurement, status) + body
    return bytes(packet)


def plain_header(kind):
    serial, init = HEADER["serial"].to_bytes(5, "little"), HEADER["init_id"].to_bytes(3, "little")
    if kind is HeaderKind.NONE:
        return b""
    if kind is HeaderKind.STANDARD:
        return struct.pack("<HH3s5sB3x", 1, HEADER["frame_id"], init, serial, HEADER["alert_flags"]) + bytes([30, 29, 1, 9]) + bytes(12)
    return struct.pack("<B3sIBxB5s", 1, init, HEADER["frame_id"], HEADER["alert_flags"], 77, serial) + bytes([30, 29, 1, 9]) + bytes(12)


@pytest.mark.parametrize("channels", [3, 32])
@pytest.mark.parametrize("name", PROFILES)
def test_every_byte_is_where_the_published_tables_put_it(name, channels):
    profile = PROFILES[name]
    footer = Footer.NONE if profile.header is HeaderKind.NONE else Footer.CONSTANT
    metadata = ouster_sensors.sensor(name)
    pixels = random_pixels(profile, channels, np.random.default_rng(channels))
    columns = columns_of(profile, 1008)
    payload = encoded(lidar_layout(profile, channels, footer), header_of(metadata, safe_state=77, **HEADER), columns, pixels)
    end = b"" if footer is Footer.NONE else bytes(24) + bytes.fromhex("dec00000efbeadde")
    assert payload.tobytes() == plain_packet(name, columns, pixels, plain_header(profile.header), frame_id=HEADER["frame_id"]) + end


@given(name=st.sampled_from(list(PROFILES)), channels=st.sampled_from([1, 5, 16]), seed=st.integers(0, 2**32 - 1), count=st.integers(1, 3))
@settings(max_examples=examples(15))
def test_decoding_gives_back_what_was_encoded_and_encodes_to_the_same_bytes(name, channels, seed, count):
    generator = np.random.default_rng(seed)
    metadata = ouster_sensors.sensor(name)
    profile, layout = metadata.profile, lidar_layout(metadata.profile, channels, metadata.footer)
    sent = []
    for number in range(count):
        columns = columns_of(profile, 16 * number, start_ns=int(generator.integers(0, 2**62)))
        columns[:, ColumnField.STATUS] *= generator.integers(0, 2, 16)
        sent.append((header_of(metadata, frame_id=65_534 + number % 2), columns, random_pixels(profile, channels, generator)))
    payloads = np.stack([encoded(layout, *packet) for packet in sent])
    read = decode_lidar_packets(payloads, profile, layout)
    assert (read.headers.dtype, read.columns.dtype) == (HEADER_DTYPE, COLUMN_DTYPE)
    for number, (header, columns, pixels) in enumerate(sent):
        whole = header if profile.header is not HeaderKind.NONE else header * np.isin(np.arange(header.size), [0, 1])
        np.testing.assert_array_equal(field_values(read.headers[number]), whole)
        np.testing.assert_array_equal(field_values(read.columns[number])[:, :3], columns[:, :3])
        assert read.columns["encoder_count"][number].tolist() == (columns[:, 3] * (name == "LEGACY")).tolist()
        for field, found, expected in zip(read.pixels._fields, read.pixels, pixels, strict=True):
            np.testing.assert_array_equal(found[number], expected, err_msg=field)
        of_packet = type(read.pixels)(*(values[number] for values in read.pixels))
        again = encoded(layout, field_values(read.headers[number]), field_values(read.columns[number]), of_packet)
        np.testing.assert_array_equal(again, payloads[number])


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (SINGLE, 524_287, 524_287),
        (SINGLE, 524_288, 0),
        (LOW, 15, 8),
        (LOW, 7, 0),
        (LOW, 262_143, 262_136),
        (LOW, 262_144, 0),
        ("LEGACY", 1_048_575, 1_048_575),
        ("LEGACY", 1_048_576, 0),
    ],
)
def test_a_range_is_rounded_down_to_the_step_and_beyond_the_largest_it_is_no_return(name, value, expected):
    assert through(name, "range_mm", value) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"), [(LOW, 4080, 4080), (LOW, 4095, 4080), (LOW, 65_535, 4080), (LOW, 31, 16), (SINGLE, 65_535, 65_535)]
)
def test_near_infrared_is_rounded_down_and_saturates(name, value, expected):
    assert through(name, "near_ir", value) == expected


@pytest.mark.parametrize(("name", "expected"), [(SINGLE, 0x1A), ("LEGACY", 0x0A), (LOW, 0)])
def test_flags_that_a_profile_has_not_are_left_out(name, expected):
    assert through(name, "flags", 0xFA) == expected


def through(name, field, value):
    """The value of one field of a pixel, encoded and decoded; all other pixels are 0."""
    metadata = ouster_sensors.sensor(name)
    pixels = allocate_pixels(metadata.profile, 32)
    getattr(pixels, field)[0, 5, 7] = value
    layout = layout_of(metadata)
    read = decode_lidar_packets(encoded(layout, header_of(metadata), columns_of(metadata.profile, 0), pixels)[None], metadata.profile, layout)
    for kind in FieldKind:
        values = read.pixels[kind].copy()
        if read.pixels._fields[kind] == field:
            values[0, 0, 5, 7] = 0
        assert not values.any()
    return int(getattr(read.pixels, field)[0, 0, 5, 7])


def packets(count=3, version="3.1.0"):
    metadata = ouster_sensors.sensor(SINGLE, version=version)
    layout = layout_of(metadata)
    pixels = random_pixels(metadata.profile, 32, np.random.default_rng(8))
    return np.stack([encoded(layout, header_of(metadata), columns_of(metadata.profile, 16 * number), pixels) for number in range(count)]), metadata


WHAT = "Ouster lidar packet of RNG19_RFL8_SIG16_NIR16 with 32 channels"


def test_packets_of_another_size_are_refused():
    payloads, metadata = packets()
    with pytest.raises(PacketError, match=rf"{WHAT} must be 6400 bytes, got an array of uint8 of shape \(3, 6399\)"):
        decode_lidar_packets(payloads[:, :-1], metadata.profile, layout_of(metadata))
    with pytest.raises(PacketError, match=rf"{WHAT} must be 6400 bytes, got an array of uint8 of shape \(6400,\)"):
        decode_lidar_packets(payloads[0], metadata.profile, layout_of(metadata))


def test_a_packet_of_another_type_is_refused_by_its_number():
    payloads, metadata = packets()
    payloads[2, 0] = 3
    with pytest.raises(PacketError, match=rf"{WHAT} must have type 1, got 3 at byte 0 of packet 2"):
        decode_lidar_packets(payloads, metadata.profile, layout_of(metadata))


@pytest.mark.parametrize("byte", [13, 44, 6367, 6380, 6399])
def test_a_packet_with_a_wrong_crc_is_refused_unless_nothing_checks_it(byte):
    payloads, metadata = packets()
    payloads[1, byte] ^= 1
    with pytest.raises(PacketError, match=rf"{WHAT} must have CRC-64 0x[0-9a-f]{{16}}, got 0x[0-9a-f]{{16}} at byte 6392 of packet 1"):
        decode_lidar_packets(payloads, metadata.profile, layout_of(metadata))
    decode_lidar_packets(payloads, metadata.profile, layout_of(metadata), checks_footer=False)


def test_a_packet_of_older_firmware_has_a_constant_that_is_checked():
    payloads, metadata = packets(version="2.3.0")
    assert int(payloads[0, -8:].view("<u8")[0]) == FOOTER_CONSTANT
    payloads[0, -1] ^= 0xFF
    with pytest.raises(PacketError, match=rf"{WHAT} must have footer 0xdeadbeef0000c0de, got 0x21adbeef0000c0de at byte 6392 of packet 0"):
        decode_lidar_packets(payloads, metadata.profile, layout_of(metadata))


def test_no_packets_decode_to_none():
    payloads, metadata = packets()
    read = decode_lidar_packets(payloads[:0], metadata.profile, layout_of(metadata))
    assert (read.headers.shape, read.columns.shape, read.pixels.range_mm.shape) == ((0,), (0, 16), (0, 1, 16, 32))


def test_the_fields_of_a_header_are_those_of_the_kernels():
    assert HEADER_DTYPE.names == tuple(field.name.lower() for field in HeaderField)
    assert COLUMN_DTYPE.names == tuple(field.name.lower() for field in ColumnField)


def test_records_of_headers_have_the_types_of_the_widest_fields():
    assert [HEADER_DTYPE[name].str for name in HEADER_DTYPE.names] == ["<u2", "<u4", "<u4", "<u8", "|u1", "|u1", "|u1", "|u1", "|u1", "|u1"]


@pytest.mark.parametrize("name", PROFILES)
def test_near_infrared_and_window_are_of_the_pixel_and_not_of_a_return(name):
    pixels = allocate_pixels(PROFILES[name], 5, (2,))
    returns = 2 if name.endswith("DUAL") else 1
    assert {values.shape for values in pixels[:4]} == {(2, returns, 16, 5)}
    assert {values.shape for values in pixels[4:]} == {(2, 1, 16, 5)}


def test_bytes_behind_the_packet_stay_as_they_are():
    metadata = ouster_sensors.sensor(SINGLE)
    layout = layout_of(metadata)
    payload = np.full(layout.size + 5, 0x55, np.uint8)
    encode_lidar_packet(layout, header_of(metadata), columns_of(metadata.profile, 0), allocate_pixels(metadata.profile, 32), payload)
    assert payload[layout.size :].tolist() == [0x55] * 5
