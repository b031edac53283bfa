"""Packets to scans: every point of the decoder once, in whole turns, and what is missing is counted."""

from pathlib import Path

import numpy as np
import pytest

import hilsim
from hilsim.api.packet import datagrams_of, read_capture
from hilsim.capture.batches import gathered
from hilsim.capture.pcap import CaptureFile
from hilsim.read.scans.scan import IDENTITY_WXYZ, no_pose
from hilsim.read.scans.streams import SensorStreams
from hilsim.show.view.feed.store import ScanStore

RIGS = {
    "VLP-16": {"profile": "vlp16", "unit": "ideal"},
    "VLP-16 dual": {"profile": "vlp16", "unit": "ideal", "return_mode": "dual"},
    "HDL-32E": {"profile": "hdl32e"},
    "Cepton": {"profile": "x90-generic"},
}
CASES = [pytest.param(table, id=name) for name, table in RIGS.items()]
SECONDS = 0.75


def packets_of(table):
    """Packets of a sensor in a room."""
    rig = {"name": "bench", "scene": {"box": [{"name": "wall", "size_m": [1.0, 30.0, 20.0], "position_m": [6.0, 0.0, 0.0]}]}}
    emulator = hilsim.Emulator({**rig, "sensor": [{"name": "roof", **table}]})
    return [packet for packet in emulator.packets(0.0, SECONDS) if packet.stream in {"data", "points"}]


@pytest.fixture(scope="module")
def recorded():
    """Packets by case, rendered once."""
    known = {}
    return lambda table: known.setdefault(str(table), packets_of(table)) or known[str(table)]


def scans_of(packets, *, at_once=50, pose=None):
    """Scans of packets that come some at a time, and the counts of their sensor."""
    found = []
    streams = SensorStreams(lambda scan, packets: found.append((scan, packets)), lambda _: None, no_pose if pose is None else pose)
    datagrams = list(datagrams_of(packets))
    for begin in range(0, len(datagrams), at_once):
        some = gathered(datagrams[begin : begin + at_once])
        streams.add("roof", some, np.arange(some.size.size))
    return found, streams.losses().get("roof")


def in_order(points):
    return np.sort(points, order=list(points.dtype.names)).tobytes()


@pytest.mark.extended
@pytest.mark.parametrize("at_once", [1, 7, 400])
@pytest.mark.parametrize("table", CASES)
def test_scans_have_each_point_of_the_decoder_once(recorded, table, at_once):
    packets = recorded(table)
    found, losses = scans_of(packets, at_once=at_once)
    points = np.concatenate([scan.points for scan, _ in found])
    decoded = hilsim.decode(packets)
    assert points.dtype == hilsim.decode(packets[:10]).dtype
    counts = np.bincount(points["packet"], minlength=len(packets))
    whole = np.flatnonzero((counts == np.bincount(decoded["packet"], minlength=len(packets))) & (counts > 0))
    assert np.count_nonzero(counts) - whole.size <= 2  # the packets in which the first scan begins and the last one ends
    assert in_order(points[np.isin(points["packet"], whole)]) == in_order(decoded[np.isin(decoded["packet"], whole)])
    assert [scan.number for scan, _ in found] == list(range(len(found)))
    assert len(found) >= 5
    assert (losses.packets, losses.lost, losses.gaps, losses.other_packets) == (len(packets), 0, 0, 0)


@pytest.mark.parametrize("table", CASES)
def test_the_packets_of_a_scan_are_those_of_its_points(recorded, table):
    packets = recorded(table)
    for scan, mine in scans_of(packets)[0]:
        assert mine.first <= scan.points["packet"].min()
        assert scan.points["packet"].max() < mine.first + len(mine.payloads)
        assert mine.payloads == [packet.payload for packet in packets[mine.first : mine.first + len(mine.payloads)]]
        assert scan.stamp_ns == mine.stamp_ns[0] == packets[mine.first].time_ns


def test_a_turn_is_from_azimuth_0_to_360(recorded):
    for scan, _ in scans_of(recorded(RIGS["VLP-16"]))[0]:
        assert np.all(np.diff(scan.points["azimuth"][scan.points["ring"] == 3]) > 0)


def test_missing_packets_are_counted_and_a_long_gap_cuts_a_scan(recorded):
    packets = recorded(RIGS["VLP-16"])
    found, losses = scans_of(packets[:100] + packets[103:200] + packets[201:])
    assert (losses.lost, losses.gaps, losses.cut_scans) == (4, 2, 0)
    later = packets[:100] + packets[400:]
    found, losses = scans_of(later)
    assert losses.cut_scans == 2  # the turn before the gap, and the one behind it
    assert all(scan.points["packet"].max() < 100 or scan.points["packet"].min() >= 100 for scan, _ in found)


def test_the_part_of_a_turn_without_firings_is_no_loss(recorded):
    packets = recorded(RIGS["VLP-16"])
    azimuth = [int.from_bytes(packet.payload[2:4], "little") for packet in packets]
    _, losses = scans_of([packet for packet, each in zip(packets, azimuth, strict=True) if not 9000 <= each < 20_000])
    assert losses.lost == 0


def test_a_head_that_does_not_turn_gives_scans_of_a_second(recorded):
    packets = recorded(RIGS["VLP-16"])
    still = packets[50].payload
    shift = [type(packet)(**{**_fields(packet), "payload": still[:1200] + packet.payload[1200:]}) for packet in packets]
    more = [type(packet)(**{**_fields(packet), "time_ns": packet.time_ns + 750_000_000}) for packet in shift]
    found, _ = scans_of(shift + more)
    assert len(found) == 1


def _fields(packet):
    return {name: getattr(packet, name) for name in packet.__slots__}


def test_other_packets_are_counted_and_left_out(recorded):
    packets = recorded(RIGS["VLP-16"])
    strange = [
        type(packet)(**{**_fields(packet), "payload": payload}) for packet, payload in zip(packets, [b"", b"x", bytes(1206), b"STDV"], strict=False)
    ]
    found, losses = scans_of(strange + packets)
    assert losses.other_packets == 4
    assert len(found) == len(scans_of(packets)[0])


def test_a_scan_has_the_pose_at_its_middle(recorded):
    asked = []

    def pose(sensor, stamp_ns):
        asked.append((sensor, stamp_ns))
        return (1.0, 2.0, 3.0), IDENTITY_WXYZ

    found, _ = scans_of(recorded(RIGS["VLP-16"]), pose=pose)
    assert found[0][0].position_m == (1.0, 2.0, 3.0)
    assert asked[1][0] == "roof"
    assert 45_000_000 < asked[1][1] - found[1][0].stamp_ns < 55_000_000


def test_a_store_removes_the_oldest_scans(recorded):
    found, _ = scans_of(recorded(RIGS["VLP-16"]))
    store = ScanStore(seconds=0.25, most_bytes=1 << 30)
    for scan, packets in found:
        store.add(scan, packets)
    numbers = [scan.number for scan in store.since("roof", 0)]
    assert numbers == [scan.number for scan, _ in found][-3:]
    assert [scan.number for scan in store.since("roof", numbers[1])] == numbers[1:]
    assert store.packets(found[0][0]) is None
    assert store.packets(found[-1][0]).payloads == found[-1][1].payloads
    assert store.since("unknown", 0) == []
    small = ScanStore(seconds=100.0, most_bytes=2_000_000)
    for scan, packets in found:
        small.add(scan, packets)
        assert small.used_bytes <= 2_000_000
    assert len(small.since("roof", 0)) >= 1


def test_a_capture_of_a_real_sensor_is_decoded_alike(capture):
    path = Path(capture("vlp32c_strongest_fov.pcap"))
    source = next(iter(CaptureFile(path))).source
    found, losses = scans_of([packet for packet in read_capture(path) if packet.sensor == source])
    assert len(found) >= 3
    assert losses.lost == 0
    points = found[1][0].points
    decoded = hilsim.decode([packet for packet in read_capture(path) if packet.sensor == source])
    inner = np.unique(points["packet"])[12:-12]
    assert in_order(points[np.isin(points["packet"], inner)]) == in_order(decoded[np.isin(decoded["packet"], inner)])
