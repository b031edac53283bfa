"""Telling packets apart by their bytes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hilsim.capture.pcap import CaptureFile
from hilsim.protocols.recognise import PacketKind, recognise
from tests.unit.replay.streams import data_packet, position_packet, stdv_packet


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (data_packet(0, 5), PacketKind.VELODYNE_DATA),
        (b"\xff\xdd" + bytes(1204), PacketKind.VELODYNE_DATA),
        (b"\xff\xcc" + bytes(1204), PacketKind.VELODYNE_DATA),
        (b"\xff\xbb" + bytes(1204), PacketKind.VELODYNE_DATA),
        (b"".join(flag + bytes(98) for flag in 3 * [*3 * [b"\xff\xee"], b"\xff\xdd"]) + b"V1.2 \x07", PacketKind.VELODYNE_HDL_64E),
        (position_packet(3_599_999_999), PacketKind.VELODYNE_POSITION),
        (position_packet(5, b""), PacketKind.VELODYNE_POSITION),
        (stdv_packet(5), PacketKind.CEPTON_STDV),
        (stdv_packet(5, sequence=7), PacketKind.CEPTON_STDV),
        (b"STDT" + bytes(300), PacketKind.CEPTON_STDT),
        (b"INFO" + bytes(300), PacketKind.CEPTON_INFO),
        (b"INFZ" + bytes(300), PacketKind.CEPTON_INFZ),
    ],
)
def test_each_kind_is_reported_by_its_bytes(payload, kind):
    assert recognise(payload) is kind


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"S",
        data_packet(0, 5)[:-1],
        data_packet(0, 5) + b"\0",
        b"\xee\xff" + bytes(1204),
        position_packet(5)[:-1],
        position_packet(5)[:-1] + b"\1",
        position_packet(0)[:198] + b"\xff\xff\xff\xff" + position_packet(0)[202:],
        stdv_packet(5)[:-1],
        b"STDV" + bytes(1460),
        b"stdv" + stdv_packet(5)[4:],
    ],
)
def test_similar_packets_are_not_recognised(payload):
    assert recognise(payload) is PacketKind.OTHER


@given(st.binary(max_size=1500))
@example(b"STDV\x01\x14" + bytes(14))
def test_any_bytes_are_some_kind(payload):
    assert recognise(payload) in PacketKind


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("vlp16_strongest_gps.pcap", {PacketKind.VELODYNE_DATA, PacketKind.VELODYNE_POSITION}),
        ("hdl32e_strongest.pcap", {PacketKind.VELODYNE_DATA, PacketKind.VELODYNE_POSITION}),
        ("vlp16_dual.pcap", {PacketKind.VELODYNE_DATA}),
        ("cepton_hr80_two_sensors.pcap", {PacketKind.CEPTON_STDT}),
        ("ouster/OS-2-128-U1_v2.3.0_1024x10.pcap", {PacketKind.OUSTER_LIDAR, PacketKind.OUSTER_IMU}),
        ("ouster/OS-0-32-U1_v2.2.0_1024x10.pcap", {PacketKind.OUSTER_LIDAR, PacketKind.OUSTER_IMU}),
        ("ouster/same_ports_nonlegacy.pcap", {PacketKind.OUSTER_LIDAR, PacketKind.OUSTER_IMU}),
    ],
)
def test_everything_in_real_captures_is_recognised(any_capture, name, kinds):
    found = {recognise(datagram.payload) for datagram in CaptureFile(any_capture(name))}
    assert kinds <= found
    assert PacketKind.OTHER not in found
