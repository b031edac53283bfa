"""Telling packets apart by their bytes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hilsim.capture.pcap import CaptureFile
from hilsim.families.cepton.recognition import CeptonKind
from hilsim.families.ouster.recognition import OusterKind
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.protocols.recognise import OtherKind, PacketKind, recognise
from tests.unit.replays.streams import data_packet, position_packet, stdv_packet


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (data_packet(0, 5), VelodyneKind.DATA),
        (b"\xff\xdd" + bytes(1204), VelodyneKind.DATA),
        (b"\xff\xcc" + bytes(1204), VelodyneKind.DATA),
        (b"\xff\xbb" + bytes(1204), VelodyneKind.DATA),
        (b"".join(flag + bytes(98) for flag in 3 * [*3 * [b"\xff\xee"], b"\xff\xdd"]) + b"V1.2 \x07", VelodyneKind.HDL_64E),
        (position_packet(3_599_999_999), VelodyneKind.POSITION),
        (position_packet(5, b""), VelodyneKind.POSITION),
        (stdv_packet(5), CeptonKind.STDV),
        (stdv_packet(5, sequence=7), CeptonKind.STDV),
        (b"STDT" + bytes(300), CeptonKind.STDT),
        (b"INFO" + bytes(300), CeptonKind.INFO),
        (b"INFZ" + bytes(300), CeptonKind.INFZ),
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
    assert recognise(payload) is OtherKind.OTHER


@given(st.binary(max_size=1500))
@example(b"STDV\x01\x14" + bytes(14))
def test_any_bytes_are_some_kind(payload):
    assert isinstance(recognise(payload), PacketKind)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("vlp16_strongest_gps.pcap", {VelodyneKind.DATA, VelodyneKind.POSITION}),
        ("hdl32e_strongest.pcap", {VelodyneKind.DATA, VelodyneKind.POSITION}),
        ("vlp16_dual.pcap", {VelodyneKind.DATA}),
        ("cepton_hr80_two_sensors.pcap", {CeptonKind.STDT}),
        ("ouster/OS-2-128-U1_v2.3.0_1024x10.pcap", {OusterKind.LIDAR, OusterKind.IMU}),
        ("ouster/OS-0-32-U1_v2.2.0_1024x10.pcap", {OusterKind.LIDAR, OusterKind.IMU}),
        ("ouster/same_ports_nonlegacy.pcap", {OusterKind.LIDAR, OusterKind.IMU}),
    ],
)
def test_everything_in_real_captures_is_recognised(any_capture, name, kinds):
    found = {recognise(datagram.payload) for datagram in CaptureFile(any_capture(name))}
    assert kinds <= found
    assert OtherKind.OTHER not in found
