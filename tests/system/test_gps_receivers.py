"""A rig as the GPS receiver of a real gpsd, which gives a real chronyd the time."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from hilsim.protocols.nmea_reading import read_sentence
from tests.support import write_rig
from tests.system.test_sensor_web import until

pytestmark = [pytest.mark.extended, pytest.mark.system]

RIG = """
name = "clock"
seed = 5
[metrics]
port = 0
[scene]
generator = "street"
[[gps_receiver]]
port = "{port}"
latitude_deg = 36.8
longitude_deg = -2.4
"""
CHRONY = """
refclock SHM 0 refid RIG poll 0 precision 1e-1
port 0
cmdport 0
bindcmdaddress {folder}/chronyd.sock
pidfile {folder}/chronyd.pid
user root
"""
NEEDS_GPSD = pytest.mark.skipif(shutil.which("gpsd") is None or shutil.which("socat") is None, reason="needs gpsd and socat (Debian packages)")


def test_a_sentence_begins_each_second_with_the_time_and_the_platforms_place(daemon, tmp_path, cable):
    line = cable()
    daemon(write_rig(tmp_path, RIG.format(port=line.device)))
    found, begun = [], b""
    while len(found) < 4:
        begun += line.read_whole(1)
        if begun.endswith(b"\n"):
            found.append((time.time_ns() / 1e9, read_sentence(begun)))
            begun = b""
    assert all(sentence.is_valid and sentence.position == "36 48.00N 002 24.00W" for _, sentence in found)
    assert all((arrived_s - sentence.of_day_s) % 86_400 < 10.0 for arrived_s, sentence in found)  # on a busy machine; never before its second
    assert len({sentence.of_day_s for _, sentence in found}) == 4


def _reports(port, kind, until_s=60.0):
    """Reports of a kind of a gpsd."""
    deadline = time.monotonic() + until_s
    with socket.create_connection(("127.0.0.1", port), timeout=20.0) as client:
        client.sendall(b'?WATCH={"enable":true,"json":true};\n')
        for text in client.makefile():
            assert time.monotonic() < deadline
            report = json.loads(text)
            if report["class"] == kind:
                yield report


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextlib.contextmanager
def _started(*command):
    """A process that is ended by its number."""
    process = subprocess.Popen([str(word) for word in command])
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def receiver(daemon, tmp_path):
    """Start a rig as a GPS receiver whose serial port has its other end at an address of socat's."""
    with contextlib.ExitStack() as started:

        def start(other_end):
            port = tmp_path / "receiver"
            started.enter_context(_started("socat", f"pty,rawer,link={port}", other_end))
            until(port.exists)
            daemon(write_rig(tmp_path, RIG.format(port=port)))

        yield start


@NEEDS_GPSD
def test_gpsd_has_the_time_and_the_place_of_the_rig(receiver, tmp_path):
    port, software = _free_port(), tmp_path / "software"
    receiver(f"pty,rawer,link={software}")
    with _started("gpsd", "-N", "-n", "-b", "-S", port, software):
        _await_port(port)
        report = next(report for report in _reports(port, "TPV") if report.get("mode", 0) >= 2 and "lat" in report)
        assert (report["lat"], report["lon"]) == pytest.approx((36.8, -2.4), abs=1e-4)
        of_now = {time.strftime("%Y-%m-%dT%H:%M", time.gmtime(time.time_ns() // 10**9 - ago_s)) for ago_s in (0, 30)}
        assert report["time"][:16] in of_now


@pytest.fixture
def own_memory():
    """Words before a command that give it shared memory of its own, as gpsd and chronyd share it, which ends with the test."""
    with _started("unshare", "--ipc", "sleep", "infinity") as holder:
        own = Path("/proc/self/ns/ipc").readlink()
        until(lambda: Path(f"/proc/{holder.pid}/ns/ipc").readlink() != own)
        yield ("nsenter", f"--ipc=/proc/{holder.pid}/ns/ipc", "--")


@NEEDS_GPSD
@pytest.mark.skipif(shutil.which("chronyd") is None, reason="needs chronyd (Debian package chrony)")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for shared memory of its own")
def test_chronyd_takes_the_time_of_the_rig_from_gpsd(receiver, own_memory, tmp_path_factory):
    folder, port, line_port = tmp_path_factory.mktemp("chrony"), _free_port(), _free_port()
    receiver(f"tcp-listen:{line_port},bind=127.0.0.1")  # gpsd gives no time server the time of a pseudo-terminal
    (folder / "chrony.conf").write_text(CHRONY.format(folder=folder))
    with (
        _started(*own_memory, "gpsd", "-N", "-n", "-b", "-S", port, f"tcp://127.0.0.1:{line_port}"),
        _started(*own_memory, "chronyd", "-x", "-d", "-f", folder / "chrony.conf"),
    ):
        until(lambda: _reach(folder) > 1, timeout_s=90.0)  # more than one second's sentence
        source = _chrony_source(folder)
    assert source["mode"] == "#"
    assert abs(float(source["measured_s"])) < 2.0  # on a busy machine
    assert float(source["measured_s"]) != 0.0


def _chrony_source(folder):
    """The reference clock as chronyc reports it; None before chronyd answers."""
    asked = subprocess.run(["chronyc", "-h", folder / "chronyd.sock", "-c", "sources"], capture_output=True, text=True, check=False)
    names = ("mode", "state", "name", "stratum", "poll", "reach", "last_s", "adjusted_s", "measured_s", "error_s")
    rows = [dict(zip(names, line.split(","), strict=True)) for line in asked.stdout.splitlines() if asked.returncode == 0]
    return next((row for row in rows if row["name"] == "RIG"), None)


def _reach(folder):
    """Number of the last eight polls that had an answer."""
    source = _chrony_source(folder)
    return 0 if source is None else int(source["reach"], 8).bit_count()


def _await_port(port):
    deadline = time.monotonic() + 30.0
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=10.0).close()
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return
