"""A rig as the GPS receiver of a real gpsd."""

import json
import shutil
import socket
import subprocess
import time

import pytest

from hilsim.protocols.nmea_reading import read_sentence
from tests.support import write_rig
from tests.system.test_sensor_web import until

pytestmark = pytest.mark.system

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


@pytest.mark.skipif(shutil.which("gpsd") is None or shutil.which("socat") is None, reason="needs gpsd and socat (Debian packages)")
def test_gpsd_has_the_time_and_the_place_of_the_rig(daemon, tmp_path):
    ends, port = [tmp_path / "receiver", tmp_path / "software"], _free_port()
    line = subprocess.Popen(["socat", *(f"pty,rawer,link={end}" for end in ends)])
    gpsd = None
    try:
        until(lambda: all(end.exists() for end in ends))
        daemon(write_rig(tmp_path, RIG.format(port=ends[0])))
        gpsd = subprocess.Popen(["gpsd", "-N", "-n", "-b", "-S", str(port), str(ends[1])])
        _await_port(port)
        report = next(report for report in _reports(port, "TPV") if report.get("mode", 0) >= 2 and "lat" in report)
        assert (report["lat"], report["lon"]) == pytest.approx((36.8, -2.4), abs=1e-4)
        of_now = {time.strftime("%Y-%m-%dT%H:%M", time.gmtime(time.time_ns() // 10**9 - ago_s)) for ago_s in (0, 30)}
        assert report["time"][:16] in of_now
    finally:
        for process in (gpsd, line):
            if process is not None:
                process.terminate()
                process.wait()


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
