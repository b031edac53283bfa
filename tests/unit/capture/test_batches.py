"""Batches hold the same datagrams that ``CaptureFile`` yields, whatever the file is made of."""

import gzip
import struct

import numpy as np
import pytest

from hilsim.capture.batches import CaptureBatches, gathered
from hilsim.capture.pcap import CaptureFile
from hilsim.errors import CaptureError
from tests.unit.capture.frames_by_hand import ETHERNET, fragments, udp_frame

CAPTURES = (
    "vlp16_strongest_gps.pcap",
    "vlp16_dual.pcap",
    "vlp16_strongest_1200rpm.pcap",
    "hdl32e_strongest.pcap",
    "vlp32c_strongest_fov.pcap",
    "cepton_hr80_two_sensors.pcap",
)
ARP = bytes.fromhex("ffffffffffff 607688102f6f 0806") + bytes(46)
TAGGED = bytes.fromhex("ffffffffffff 607688102f6f 8100 0005 0800")


def write(path, frames, *, magic="d4c3b2a1", order="<", link=1, compress=lambda data: data):
    data = bytes.fromhex(magic) + struct.pack(f"{order}HHiIII", 2, 4, 0, 0, 262_144, link)
    for index, frame in enumerate(frames):
        data += struct.pack(f"{order}IIII", 1_700_000_000, index, len(frame), len(frame)) + frame
    path.write_bytes(compress(data))
    return path


def assert_alike(path):
    """Compare with ``CaptureFile``; gives the payloads."""
    batches = CaptureBatches(path)
    found = list(batches)
    expected = list(CaptureFile(path))
    payloads = [batch.data[start : start + size].tobytes() for batch in found for start, size in zip(batch.start, batch.size, strict=True)]
    assert payloads == [datagram.payload for datagram in expected]
    if expected:
        alike = gathered(expected)
        np.testing.assert_array_equal(np.concatenate([batch.host_stamp_ns for batch in found]), alike.host_stamp_ns)
        np.testing.assert_array_equal(np.concatenate([batch.sender for batch in found]), alike.sender)
    assert batches.read_bytes == path.stat().st_size
    return payloads


@pytest.mark.parametrize("name", CAPTURES)
def test_real_captures_hold_the_same_datagrams(any_capture, name):
    assert len(assert_alike(any_capture(name))) > 300


def test_the_headers_of_plain_frames_lie_before_their_payloads_also_behind_an_unusual_record(tmp_path):
    frames = [udp_frame(bytes([number]) * 50) for number in range(4)]
    for odd in ([], [ETHERNET[:10]]):
        for batch in CaptureBatches(write(tmp_path / "a.pcap", [*odd, *frames])):
            assert batch.header_size == 42
            found = [batch.data[start - 42 : start + size].tobytes() for start, size in zip(batch.start, batch.size, strict=True)]
            assert found == frames


def test_a_batch_with_a_datagram_whose_headers_are_not_plain_has_no_headers(tmp_path):
    tagged = udp_frame(b"in a vlan", link=TAGGED)
    (batch,) = CaptureBatches(write(tmp_path / "a.pcap", [tagged, udp_frame(b"plain")]))
    assert batch.header_size == 0
    assert batch.start[0] == 0


PLAIN = [udp_frame(bytes([number]) * 100) for number in range(30)]


@pytest.mark.parametrize(
    "odd",
    [
        [ARP],
        [udp_frame(b"in a vlan", link=TAGGED)],
        [udp_frame(b"length of another packet", ip_size=0x04D2)],
        [udp_frame(b"UDP length too long", udp_size=2000)],
        [udp_frame(b"tcp", protocol=6)],
        fragments(udp_frame(bytes(range(200)), fragment=0), [80, 160]),
        [ETHERNET[:10]],
        [b""],
    ],
    ids=["ARP", "VLAN", "IPv4 length", "UDP length", "TCP", "fragments", "short frame", "empty frame"],
)
def test_one_frame_that_is_not_plain_changes_nothing_for_the_others(tmp_path, odd):
    payloads = assert_alike(write(tmp_path / "odd.pcap", [*PLAIN[:10], *odd, *PLAIN[10:]]))
    assert {frame[42:] for frame in PLAIN} <= set(payloads)


@pytest.mark.parametrize("magic", ["d4c3b2a1", "4d3cb2a1"])
def test_micro_and_nanoseconds_are_distinguished(tmp_path, magic):
    assert_alike(write(tmp_path / "a.pcap", PLAIN, magic=magic))


def test_other_byte_orders_link_layers_and_compressed_files_are_read_too(tmp_path):
    assert len(assert_alike(write(tmp_path / "big.pcap", PLAIN, magic="a1b2c3d4", order=">"))) == 30
    assert len(assert_alike(write(tmp_path / "raw.pcap", [frame[14:] for frame in PLAIN], link=101))) == 30
    assert len(assert_alike(write(tmp_path / "a.pcap.gz", PLAIN * 100, compress=gzip.compress))) == 3000


def test_a_file_that_breaks_off_gives_what_is_whole_and_says_so(tmp_path):
    path = write(tmp_path / "cut.pcap", PLAIN)
    path.write_bytes(path.read_bytes()[:-20])
    batches = CaptureBatches(path)
    assert sum(batch.start.size for batch in batches) == 29
    assert batches.file.notes.broken.startswith("the file breaks off after frame 29, at byte")


def test_a_file_that_is_not_a_capture_is_an_error(tmp_path):
    (tmp_path / "text.pcap").write_text("no capture at all, and long enough")
    with pytest.raises(CaptureError, match="must be a PCAP or PCAPNG capture"):
        list(CaptureBatches(tmp_path / "text.pcap"))
    with pytest.raises(CaptureError, match="cannot be opened"):
        list(CaptureBatches(tmp_path / "absent.pcap"))
