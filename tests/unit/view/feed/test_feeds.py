"""Feeds of a capture and of a UDP port."""

import socket
import time
from itertools import chain, repeat
from unittest.mock import MagicMock, Mock

import numpy as np
import pytest

import hilsim
from hilsim.capture.batches import PcapPieces
from hilsim.capture.pcap import CaptureFile
from hilsim.config.script import parse_change
from hilsim.errors import CaptureError
from hilsim.show.view.feed import daemon_feed
from hilsim.show.view.feed.capture_feed import CaptureFeed
from hilsim.show.view.feed.listen_feed import ListenFeed
from hilsim.show.view.feed.mirror import lasting
from hilsim.show.view.sources import mounts_of

SOURCE = "127.0.1.201"


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    """A second of a VLP-16."""
    path = tmp_path_factory.mktemp("view") / "room.pcap"
    rig = hilsim.load_rig(
        {
            "name": "bench",
            "scene": {"box": [{"name": "wall", "size_m": [1.0, 30.0, 20.0], "position_m": [6.0, 0.0, 0.0]}]},
            "sensor": [{"name": "roof", "network": {"source": SOURCE, "destination": "127.0.0.1"}}],
        }
    )
    hilsim.record(rig, path, duration_s=1.0)
    return path


def await_true(check):
    until_s = time.monotonic() + 30
    while not check():
        assert time.monotonic() < until_s
        time.sleep(0.005)


def rests(played):
    """Whether nothing moves for a while: what was under way when it was paused is done."""
    before = played.position_s, len(played.scans_since(SOURCE, 0))
    time.sleep(0.2)
    return before == (played.position_s, len(played.scans_since(SOURCE, 0)))


@pytest.fixture
def played(capture):
    feed = CaptureFeed(capture)
    yield feed
    feed.close()
    feed.close()


def test_a_capture_plays_at_its_own_rate_in_a_loop(played):
    begun_s = time.monotonic()
    await_true(lambda: len(played.scans_since(SOURCE, 0)) >= 12)
    assert time.monotonic() - begun_s > 1.2
    assert played.sensors() == (SOURCE,)
    assert played.status() is None
    assert 0.99 < played.duration_s < 1.01
    scans = played.scans_since(SOURCE, 0)
    assert [scan.number for scan in scans] == list(range(len(scans)))
    np.testing.assert_array_equal(scans[0].points["x"], scans[9].points["x"])  # nine turns of a second are whole
    assert played.losses()[SOURCE].lost == 0


def test_a_capture_is_paused_and_sought(played):
    await_true(lambda: len(played.scans_since(SOURCE, 0)) >= 2)
    played.pause()
    await_true(lambda: rests(played))
    position_s, count = played.position_s, len(played.scans_since(SOURCE, 0))
    time.sleep(0.4)
    assert (played.position_s, len(played.scans_since(SOURCE, 0)), played.is_playing) == (position_s, count, False)
    played.seek_s(0.6)
    await_true(lambda: played.position_s >= 0.59)
    played.play()
    await_true(lambda: len(played.scans_since(SOURCE, 0)) >= count + 2)
    first = played.scans_since(SOURCE, count)[0]
    stamps_ns = [datagram.host_stamp_ns for datagram in CaptureFile(played._path)]
    assert first.stamp_ns - stamps_ns[0] >= 600_000_000
    with pytest.raises(ValueError, match="position_s must be 0 to"):
        played.seek_s(-1.0)


def test_sensors_of_a_capture_are_where_a_rig_has_those_of_their_addresses(capture):
    sensors = [
        {
            "name": name,
            "mount_position_m": [x, 0.0, 1.0],
            "network": {"source": source, "destination": "127.0.0.1", "data_port": port, "position_port": port + 6000},
        }
        for name, x, source, port in (("a", 1.0, "127.0.1.202", 2368), ("b", 2.0, SOURCE, 2368), ("c", 3.0, SOURCE, 2369))
    ]
    mounts = mounts_of(hilsim.load_rig({"name": "bench", "scene": {"box": [{"name": "wall", "size_m": [1.0, 1.0, 1.0]}]}, "sensor": sensors}))
    assert {name: mount.position_m[0] for name, mount in mounts.items()} == {"127.0.1.202": 1.0, SOURCE: 2.0, f"{SOURCE}:2369": 3.0}
    feed = CaptureFeed(capture, mounts=mounts)
    try:
        await_true(lambda: feed.scans_since(SOURCE, 0))
        assert (feed.scans_since(SOURCE, 0)[0].position_m, feed.scans_since(SOURCE, 0)[0].wxyz) == ((2.0, 0.0, 1.0), mounts[SOURCE].orientation)
    finally:
        feed.close()


def test_a_file_that_cannot_be_played_is_refused(tmp_path):
    (tmp_path / "bad.pcap").write_bytes(b"nothing of that kind")
    with pytest.raises(CaptureError):
        CaptureFeed(tmp_path / "bad.pcap")


def test_a_cut_file_is_played_and_reported(capture, tmp_path):
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(capture.read_bytes()[:-700])
    feed = CaptureFeed(cut)
    try:
        assert any("breaks off" in note for note in feed.notes), feed.notes
        await_true(lambda: len(feed.scans_since(SOURCE, 0)) >= 1)
    finally:
        feed.close()


def test_sensors_that_send_to_a_port_are_heard(capture):
    feed = ListenFeed("127.0.0.1", 0)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
            sending.bind((SOURCE, 0))
            begin_ns = None
            for datagram in CaptureFile(capture):
                begin_ns = begin_ns or datagram.host_stamp_ns - time.monotonic_ns()
                time.sleep(max((datagram.host_stamp_ns - begin_ns - time.monotonic_ns()) / 1e9, 0.0))
                sending.sendto(datagram.payload, ("127.0.0.1", feed.port))
        await_true(lambda: len(feed.scans_since(SOURCE, 0)) >= 8)
        assert feed.sensors() == (SOURCE,)
        assert feed.dropped == 0
        assert time.time_ns() - feed.scans_since(SOURCE, 0)[0].stamp_ns < 60_000_000_000
        with pytest.raises(CaptureError, match="the port is in use"):
            ListenFeed("127.0.0.1", feed.port)
    finally:
        feed.close()
        feed.close()


@pytest.mark.parametrize("size", [1, 17, 1000, 1 << 20])
def test_a_stream_in_pieces_has_the_datagrams_of_the_file(capture, size):
    whole = capture.read_bytes()[: 60_000 if size == 1 else None]
    pieces, found = PcapPieces(), []
    for begin in range(0, len(whole), size):
        for batch in pieces.add(whole[begin : begin + size]):
            found += [
                (stamp_ns, batch.data[start : start + length].tobytes())
                for stamp_ns, start, length in zip(*(column.tolist() for column in (batch.host_stamp_ns, batch.start, batch.size)), strict=True)
            ]
    expected = [(datagram.host_stamp_ns, datagram.payload) for datagram in CaptureFile(capture)]
    assert found == expected[: len(found)]
    assert len(found) >= (len(expected) if size > 1 else 40)
    assert pieces.skipped == 0


def test_a_daemons_scans_with_packets_that_were_left_out_are_dropped_as_a_whole_and_counted(capture, monkeypatch):
    data = capture.read_bytes()
    ends = [24]
    while ends[-1] < len(data):
        ends.append(ends[-1] + 16 + int.from_bytes(data[ends[-1] + 8 : ends[-1] + 12], "little"))
    begin, end = ends[300], ends[550]
    gap = data[end : end + 8] + bytes(4) + (250).to_bytes(4, "little")
    source = MagicMock()
    source.read.side_effect = chain([data[:begin] + gap + data[end:]], repeat(b""))
    source.__enter__.return_value = source
    monkeypatch.setattr(daemon_feed.Client, "packets", Mock(return_value=source))
    monkeypatch.setattr(daemon_feed.DaemonFeed, "_look_at_rig", Mock())
    feed = daemon_feed.DaemonFeed("/nowhere")
    try:
        await_true(lambda: feed.lost_packets)
        await_true(lambda: feed.shown_scans >= 5)
        assert np.ptp([scan.points.size for scan in feed.scans_since(SOURCE, 0)]) < 20
        assert (feed.lost_packets, feed.lost_scans, feed.losses()[SOURCE].lost) == (250, 4, 0)
    finally:
        feed.close()


def test_what_is_no_capture_is_refused():
    with pytest.raises(CaptureError, match="a stream of packets must be a PCAP of Ethernet frames"):
        list(PcapPieces().add(bytes(24)))


def test_the_history_of_a_rig_that_is_edited_for_hours_has_what_still_lasts_and_the_last_minute():
    moves = [parse_change({"kind": "move", "at_s": 0.2 * number, "name": "ab"[number % 2], "position_m": [number, 0, 0]}) for number in range(1000)]
    assert lasting(moves) == tuple(moves[697:])  # the last move of each before the last minute, and those within it
    box = {"box": {"name": "x", "size_m": [1, 1, 1]}}
    move = {"kind": "move", "name": "x", "position_m": [1, 0, 0]}
    rain = {"kind": "weather", "weather": {"rain_mm_per_h": 5.0}}
    tables = (
        {"kind": "add", **box},
        move,
        {"kind": "remove", "name": "x"},
        {"kind": "add", **box},
        move,
        rain,
        rain,
        {**move, "name": "y", "at_s": 99.0},
    )
    changes = [parse_change({"at_s": float(at_s), **table}) for at_s, table in enumerate(tables)]
    assert lasting(changes) == tuple(changes[number] for number in (0, 2, 3, 4, 6, 7))
