"""Link headers against real frames."""

import struct

import dpkt
import numpy as np
import pytest

from hilsim.families.velodyne.recognition import VELODYNE_DATA_STYLE, VELODYNE_POSITION_STYLE
from hilsim.protocols.ethernet import (
    HEADER_SIZE,
    TAG_SIZE,
    LinkStyle,
    add_tag,
    fit_headers,
    header_template,
    ip_start,
    parse_mac,
    spoil_checksums,
    write_fragment,
    write_headers,
)
from hilsim.protocols.flow_key import FlowKey


def test_every_frame_of_a_real_vlp16_is_reproduced_from_its_payload(capture):
    with capture("vlp16_strongest_gps.pcap").open("rb") as file:
        frames = [frame for _, frame in dpkt.pcap.Reader(file)]
    macs = {"source_mac": "60:76:88:10:2f:6f", "destination_mac": "ff:ff:ff:ff:ff:ff"}
    kinds = set()
    for frame in frames:
        ip = dpkt.ethernet.Ethernet(frame).data
        style = VELODYNE_DATA_STYLE if ip.data.dport == 2368 else VELODYNE_POSITION_STYLE
        kinds.add(ip.data.dport)
        source = ".".join(str(byte) for byte in ip.src)
        template = header_template(style, FlowKey(source, ip.data.sport, "255.255.255.255", ip.data.dport), **macs)
        out = np.zeros(len(frame), np.uint8)
        out[HEADER_SIZE:] = np.frombuffer(frame[HEADER_SIZE:], np.uint8)
        assert write_headers(template, ip.id, style.udp_checksum, out, len(frame) - HEADER_SIZE) == len(frame)
        assert out.tobytes() == frame
    assert kinds == {2368, 8308}


@pytest.mark.parametrize("payload_size", [1, 2, 511, 512])
def test_checksums_verify_for_odd_and_even_payloads(payload_size):
    template = header_template(
        VELODYNE_POSITION_STYLE,
        FlowKey("10.0.0.1", 8308, "10.0.0.2", 8308),
        source_mac="60:76:88:00:00:01",
        destination_mac="02:00:00:00:00:02",
    )
    frame = np.random.default_rng(payload_size).integers(0, 256, HEADER_SIZE + payload_size).astype(np.uint8)
    write_headers(template, 70_000, True, frame, payload_size)  # noqa: FBT003
    ip = dpkt.ethernet.Ethernet(frame.tobytes()).data
    assert ip.id == 70_000 % 65_536
    written = ip.sum, ip.data.sum
    ip.sum = ip.data.sum = 0
    bytes(ip)  # dpkt fills in checksums that are 0
    assert (ip.sum, ip.data.sum) == written


def test_a_udp_checksum_that_comes_out_as_0_is_sent_as_ffff():
    """A checksum of 0 means that the sender computed none (RFC 768)."""
    template = header_template(
        VELODYNE_POSITION_STYLE,
        FlowKey("10.0.0.1", 8308, "10.0.0.2", 8308),
        source_mac="60:76:88:00:00:01",
        destination_mac="02:00:00:00:00:02",
    )
    frame = np.zeros(HEADER_SIZE + 2, np.uint8)
    # Addresses, protocol, UDP length (twice), ports, payload: their one's complement sum must be 0xFFFF.
    others = 0x0A00 + 0x0001 + 0x0A00 + 0x0002 + 17 + 10 + 10 + 8308 + 8308
    frame[HEADER_SIZE:] = np.frombuffer(struct.pack(">H", 0xFFFF - others), np.uint8)
    write_headers(template, 1, True, frame, 2)  # noqa: FBT003
    assert frame[40:42].tobytes() == b"\xff\xff"


def test_a_wrong_mac_is_refused_by_text():
    with pytest.raises(ValueError, match='six bytes like "60:76:88:10:2f:6f", got "60:76:88:10:2f"'):
        parse_mac("60:76:88:10:2f")
    with pytest.raises(ValueError, match='got "60:76:88:10:2f:zz"'):
        parse_mac("60:76:88:10:2f:zz")


def test_a_ttl_outside_one_byte_is_refused():
    with pytest.raises(ValueError, match="ttl must be 1 to 255, got 256"):
        LinkStyle(ttl=256, dont_fragment=True, counting_identification=False, udp_checksum=False)


@pytest.fixture(params=[True, False], ids=["with a checksum", "without"])
def made(request):
    """A frame of 101 bytes of payload, with or without a checksum of UDP, and room for a tag."""
    style = LinkStyle(ttl=64, dont_fragment=False, counting_identification=True, udp_checksum=request.param)
    flow = FlowKey("10.0.0.1", 8308, "10.0.0.2", 8308)
    template = header_template(style, flow, source_mac="60:76:88:00:00:01", destination_mac="02:00:00:00:00:02")
    frame = np.zeros(HEADER_SIZE + 101 + TAG_SIZE, np.uint8)
    frame[HEADER_SIZE : HEADER_SIZE + 101] = np.random.default_rng(3).integers(1, 256, 101)
    write_headers(template, 7, request.param, frame, 101)
    return frame, request.param


def are_right(frame):
    """Whether the checksums of IP and UDP are those that dpkt fills in."""
    ip = dpkt.ethernet.Ethernet(bytes(frame)).data
    written = ip.sum, ip.data.sum
    ip.sum = ip.data.sum = 0
    bytes(ip)
    return ip.sum == written[0], ip.data.sum == written[1]


def test_headers_fit_a_changed_payload(made):
    frame, has_checksum = made
    frame[HEADER_SIZE] ^= 0xFF
    fit_headers(frame, 60)
    ip = dpkt.ethernet.Ethernet(frame[: HEADER_SIZE + 60].tobytes()).data
    assert (ip.len, ip.data.ulen, ip.id) == (88, 68, 7)
    assert (ip.data.sum != 0) == has_checksum
    assert are_right(frame[: HEADER_SIZE + 60]) == (True, has_checksum)


@pytest.mark.parametrize(("of_udp", "of_ip"), [(True, False), (False, True), (True, True)])
def test_checksums_are_spoilt_one_by_one(made, of_udp, of_ip):
    frame, has_checksum = made
    spoil_checksums(frame, 101, of_udp, of_ip)
    assert are_right(frame[: HEADER_SIZE + 101]) == (not of_ip, has_checksum and not of_udp)
    assert not of_udp or dpkt.ethernet.Ethernet(frame[: HEADER_SIZE + 101].tobytes()).data.data.sum != 0


def test_fragments_of_a_tagged_frame_are_read_by_another_decoder(made):
    frame, _ = made
    whole = frame[34 : HEADER_SIZE + 101].tobytes()
    size = add_tag(frame, HEADER_SIZE + 101, 5 << 13 | 42)
    assert (size, ip_start(frame)) == (HEADER_SIZE + 101 + TAG_SIZE, 18)
    parts = []
    for number in range(3):
        fragment = np.zeros(200, np.uint8)
        ethernet = dpkt.ethernet.Ethernet(fragment[: write_fragment(frame, size, 48, number, 99, fragment)].tobytes())
        assert (ethernet.vlan_tags[0].id, ethernet.vlan_tags[0].pri) == (42, 5)
        ip = ethernet.data
        assert (ip.id, ip.mf, 8 * ip.offset) == (99, number < 2, 48 * number)
        payload, written, ip.sum = bytes(ip.data), ip.sum, 0
        bytes(ip)
        assert ip.sum == written
        parts.append(payload)
    assert b"".join(parts) == whole
