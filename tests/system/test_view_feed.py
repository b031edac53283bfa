"""The live view's feed of a daemon: the points of a recording of the same time, poses, ground truth."""

import os
import signal
import subprocess
import sys
import time
import tomllib

import numpy as np
import pytest

import hilsim
from hilsim.api.daemon import Daemon
from hilsim.api.packet import read_capture
from hilsim.errors import ConfigError
from hilsim.show.view.feed.daemon_feed import DaemonFeed
from tests.system.conftest import SCENE, sensor_table
from tests.system.reception import missing_packets

pytestmark = pytest.mark.system


@pytest.fixture
def bench(receiver, tmp_path):
    """Makes a daemon with a recording and both kinds of control."""

    def make(extra="", tables=None):
        data, position = receiver(), receiver()
        table = tomllib.loads(SCENE + sensor_table("roof", data.port, position.port, extra)) | (tables or {})
        table["transmit"] = {**table.get("transmit", {}), "late_policy": "send"}  # what a busy machine is late with is sent all the same
        table["lead_ms"] = 200.0
        table["record"] = {"file": str(tmp_path / "drive.pcap")}
        table["control"] = {"socket": str(tmp_path / "control")}
        return Daemon(table, log=tmp_path / "log")

    return make


def await_true(check, timeout_s=60):
    deadline = time.monotonic() + timeout_s
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def in_order(points):
    return np.sort(points, order=list(points.dtype.names)).tobytes()


def test_points_equal_those_of_the_recording(bench, tmp_path):
    with bench() as daemon:
        feed = DaemonFeed(str(tmp_path / "control"))
        await_true(lambda: len(feed.scans_since("roof", 0)) >= 6)
        scans = feed.scans_since("roof", 0)
        packets = [feed._store.packets(scan) for scan in scans]
        truth = feed.truth(scans[2], 100)
        status, names, losses = feed.status(), feed.series.names(), feed.losses()["roof"]
        feed.close()
        feed.close()
        assert feed.sensors() == ("roof",)
        assert "drive" not in feed.title
        metrics = daemon.metrics()
        assert metrics.total("hilsim_dropped_packets_total") == metrics.total("hilsim_render_skipped_packets_total") == 0
    recorded = [packet for packet in read_capture(tmp_path / "drive.pcap") if packet.stream == "data"]
    payloads = [packet.payload for packet in recorded]
    begin = payloads.index(packets[1].payloads[0])
    for scan, mine in zip(scans[1:-1], packets[1:-1], strict=True):
        at = begin + mine.first - packets[1].first
        assert mine.payloads == payloads[at : at + len(mine.payloads)]
        assert scan.stamp_ns == recorded[at].time_ns
        decoded = hilsim.decode(payloads[at : at + len(mine.payloads)])
        points = scan.points.copy()
        points["packet"] -= mine.first
        inner = (points["packet"] > 0) & (points["packet"] < len(mine.payloads) - 1)
        same = (decoded["packet"] > 0) & (decoded["packet"] < len(mine.payloads) - 1)
        assert in_order(points[inner]) == in_order(decoded[same])
    assert (losses.lost, losses.other_packets > 0) == (0, True)
    assert abs(truth["range_m"] - truth["measured_range_m"]) < 0.2
    assert truth["object"] is not None
    assert status["rig_s"] > 0
    assert status["health"]["level"] in {"healthy", "degraded"}
    assert {"roof/data lateness_max_s", "clock utc_offset_s"} <= set(names)
    assert not feed.notes


@pytest.mark.extended
def test_poses_follow_the_rigs_own_tracks_and_its_changes(bench, tmp_path):
    (tmp_path / "path.csv").write_text("time_s,x_m,y_m,z_m,qw,qx,qy,qz\n0,0,0,1.5,1,0,0,0\n100,10,0,1.5,1,0,0,0\n")
    platform = {"kind": "trajectory", "file": str(tmp_path / "path.csv")}
    with bench(tables={"platform": platform}) as daemon:
        feed = DaemonFeed(str(tmp_path / "control"), labels_hz=20.0)
        await_true(lambda: len(feed.scans_since("roof", 0)) >= 4 and any(scan.instance is not None for scan in feed.scans_since("roof", 0)))
        scans = feed.scans_since("roof", 0)
        emulator = hilsim.Emulator(daemon.control._requested({"do": "rig"})["table"])
        epoch_ns = daemon.control._requested({"do": "rig"})["utc_epoch_ns"]
        middle_s = (scans[2].stamp_ns - epoch_ns) / 1e9 + 0.05
        pose = emulator.sensor_pose(middle_s, "roof")
        np.testing.assert_allclose(scans[2].position_m, pose.position_m, atol=0.05)
        np.testing.assert_allclose(scans[2].wxyz, pose.orientation, atol=1e-3)
        labelled = next(scan for scan in scans if scan.instance is not None)
        assert labelled.instance.shape == labelled.label.shape == labelled.points.shape
        assert (labelled.instance >= 0).mean() > 0.95
        daemon.control.change("add", box={"name": "crate", "size_m": [1.0, 1.0, 3.0], "position_m": [0.0, 4.0, 1.5]})
        number = feed.scans_since("roof", 0)[-1].number

        def sees_crate():
            newer = [scan for scan in feed.scans_since("roof", number + 2) if scan.instance is not None]
            return any("crate" in {feed.object_name(int(each)) for each in np.unique(scan.instance)} for scan in newer)

        await_true(sees_crate)
        feed.close()


@pytest.mark.extended
def test_a_view_that_is_killed_changes_nothing_on_the_wire(bench, tmp_path):
    code = (
        "import sys, time\nfrom hilsim.show.view.feed.daemon_feed import DaemonFeed\nfeed = DaemonFeed(sys.argv[1])\n"
        "while len(feed.scans_since('roof', 0)) < 3: time.sleep(0.01)\nprint('ready', flush=True)\ntime.sleep(60)\n"
    )
    with bench() as daemon:
        view = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "control")], stdout=subprocess.PIPE, text=True)
        assert view.stdout.readline() == "ready\n"
        os.kill(view.pid, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(view.pid, signal.SIGKILL)
        view.wait()
        view.stdout.close()
        await_true(lambda: not daemon.control.state()["packet_streams"]["clients"])
        metrics = daemon.metrics()
        for name in ("dropped_packets", "render_skipped_packets"):
            assert metrics.total(f"hilsim_{name}_total") == 0
    stamps_us = [int.from_bytes(packet.payload[1200:1204], "little") for packet in read_capture(tmp_path / "drive.pcap") if packet.stream == "data"]
    assert missing_packets(stamps_us) == 0


@pytest.mark.extended
def test_a_feed_waits_for_its_daemon_and_finds_it_again(bench, tmp_path):
    feed = DaemonFeed(str(tmp_path / "control"))
    await_true(lambda: "connection" in feed.notes)
    assert (feed.sensors(), feed.status(), feed.scans_since("roof", 0)) == ((), None, [])
    for _ in range(2):
        number = feed.scans_since("roof", 0)[-1].number + 1 if feed.sensors() else 0
        with bench():
            await_true(lambda number=number: feed.scans_since("roof", number))
    feed.close()


def test_what_is_no_address_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="a view must follow a control socket"):
        DaemonFeed("udp:127.0.0.1:9465")
    with pytest.raises(ConfigError, match="a token must come with"):
        DaemonFeed(str(tmp_path / "control"), tmp_path / "token")
    with pytest.raises(ConfigError, match="token"):
        DaemonFeed("http://127.0.0.1:9466")
