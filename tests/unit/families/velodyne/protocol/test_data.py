"""The data packet against the manual, golden bytes, a round trip and real captures."""

import dpkt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilsim.errors import PacketError
from hilsim.families.velodyne.protocol.data import (
    DATA_PACKET_DTYPE,
    DATA_PACKET_SIZE,
    Product,
    ReturnMode,
    decode_data_packets,
    encode_data_packet,
    factory_bytes,
)
from tests.depth import examples


def encoded(azimuth, distance, reflectivity, stamp_us=0, mode=ReturnMode.STRONGEST, product=Product.VLP_16):
    payload = np.full(DATA_PACKET_SIZE, 0xAA, np.uint8)
    encode_data_packet(azimuth, distance, reflectivity, stamp_us, factory_bytes(mode, product), payload)
    return payload


def test_fields_stand_at_the_manuals_offsets():
    fields = DATA_PACKET_DTYPE.fields
    assert [fields[name][1] for name in ("blocks", "timestamp", "return_mode", "product")] == [0, 1200, 1204, 1205]
    block = fields["blocks"][0].base
    assert (block.itemsize, block.fields["azimuth"][1], block.fields["channels"][1]) == (100, 2, 4)


def test_every_byte_of_a_vlp16_packet_is_where_the_manual_draws_it():
    distance = (np.arange(24 * 16, dtype=np.uint16) * 3 + 257).reshape(1, 24, 16)
    reflectivity = (np.arange(24 * 16) % 251).astype(np.uint8).reshape(1, 24, 16)
    azimuth = np.arange(24, dtype=np.int64) * 20 + 35500
    payload = encoded(azimuth, distance, reflectivity, 0x12345678 % 3_600_000_000)
    expected = bytearray()
    for block in range(12):
        expected += b"\xff\xee" + int(azimuth[2 * block]).to_bytes(2, "little")
        for record in range(32):
            sequence, channel = 2 * block + record // 16, record % 16
            expected += int(distance[0, sequence, channel]).to_bytes(2, "little") + bytes([int(reflectivity[0, sequence, channel])])
    expected += (0x12345678).to_bytes(4, "little") + b"\x37\x22"
    assert payload.tobytes() == bytes(expected)


def test_dual_packets_carry_the_last_return_in_even_and_the_strongest_in_odd_blocks():
    distance = np.zeros((2, 12, 16), np.uint16)
    distance[0], distance[1] = 2000, 1000
    azimuth = np.arange(12, dtype=np.int64) * 20
    packet = decode_data_packets(encoded(azimuth, distance, np.zeros((2, 12, 16), np.uint8), mode=ReturnMode.DUAL)[None])[0]
    assert (packet["blocks"]["channels"]["distance"][0::2] == 2000).all()
    assert (packet["blocks"]["channels"]["distance"][1::2] == 1000).all()
    np.testing.assert_array_equal(packet["blocks"]["azimuth"][0::2], azimuth[::2])
    np.testing.assert_array_equal(packet["blocks"]["azimuth"][1::2], azimuth[::2])
    assert packet["return_mode"] == 0x39


def test_a_32_channel_sensor_fills_a_block_with_one_firing_sequence():
    distance = np.arange(12 * 32, dtype=np.uint16).reshape(1, 12, 32)
    packet = decode_data_packets(encoded(np.arange(12, dtype=np.int64), distance, np.zeros((1, 12, 32), np.uint8), product=Product.HDL_32E)[None])[0]
    np.testing.assert_array_equal(packet["blocks"]["channels"]["distance"], distance[0])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(30))
def test_decoding_gives_back_what_was_encoded(seed):
    generator = np.random.default_rng(seed)
    distance = generator.integers(0, 65536, (1, 24, 16)).astype(np.uint16)
    reflectivity = generator.integers(0, 256, (1, 24, 16)).astype(np.uint8)
    azimuth = generator.integers(0, 36000, 24)
    stamp = int(generator.integers(0, 3_600_000_000))
    packet = decode_data_packets(encoded(azimuth, distance, reflectivity, stamp)[None])[0]
    np.testing.assert_array_equal(packet["blocks"]["channels"]["distance"].reshape(24, 16), distance[0])
    np.testing.assert_array_equal(packet["blocks"]["channels"]["reflectivity"].reshape(24, 16), reflectivity[0])
    np.testing.assert_array_equal(packet["blocks"]["azimuth"], azimuth[::2])
    assert packet["timestamp"] == stamp


@pytest.mark.parametrize(
    ("name", "returns", "channels"), [("vlp16_strongest_gps.pcap", 1, 16), ("vlp16_dual.pcap", 2, 16), ("hdl32e_strongest.pcap", 1, 32)]
)
def test_a_real_packet_decoded_and_encoded_again_is_the_same_bytes(any_capture, name, returns, channels):
    with any_capture(name).open("rb") as file:
        frames = [frame for _, frame in dpkt.pcap.Reader(file) if len(frame) == 1248][:50]
    payloads = np.frombuffer(b"".join(frame[42:] for frame in frames), np.uint8).reshape(-1, DATA_PACKET_SIZE)
    per_block = 32 // channels
    for packet, payload in zip(decode_data_packets(payloads), payloads, strict=True):
        records = packet["blocks"]["channels"].reshape(12 // returns, returns, per_block, channels).transpose(1, 0, 2, 3)
        records = np.ascontiguousarray(records).reshape(returns, -1, channels)
        again = encoded(
            np.repeat(packet["blocks"]["azimuth"][::returns].astype(np.int64), per_block),
            np.ascontiguousarray(records["distance"]),
            np.ascontiguousarray(records["reflectivity"]),
            int(packet["timestamp"]),
            packet["return_mode"],
            packet["product"],
        )
        assert again.tobytes() == payload.tobytes()


def test_decode_names_the_block_with_a_wrong_flag():
    payload = encoded(np.zeros(24, np.int64), np.zeros((1, 24, 16), np.uint16), np.zeros((1, 24, 16), np.uint8))
    payload[700:702] = 0
    with pytest.raises(PacketError, match=r"packet 0 block 7 must start with flag 0xeeff, got 0x0000 at byte 700"):
        decode_data_packets(payload[None])


def test_decode_refuses_another_size():
    with pytest.raises(PacketError, match="must be 1206 bytes each"):
        decode_data_packets(np.zeros((1, 1200), np.uint8))
