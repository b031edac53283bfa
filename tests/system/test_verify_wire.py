"""What ``hilsim verify`` says of a capture of hilsim's own sockets, made on a pair of virtual interfaces between two network namespaces."""

import os
import shutil
import subprocess
import sys

import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.read.analysis.conformance.checker import check
from tests.support import write_rig
from tests.system.conftest import SCENE
from tests.system.test_raw_frames import namespaces  # noqa: F401 - a fixture

pytestmark = [
    pytest.mark.extended,
    pytest.mark.system,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2 to make network namespaces"),
]

_SNIFFER = """
import socket, struct, sys, time
frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
frames.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
frames.bind(("receive0", 0))
frames.settimeout(60)
print("ready", flush=True)
out = open(sys.argv[1], "wb")
out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
kept = {2368: 0, 8308: 0}
while kept[2368] < 600 or kept[8308] < 60:
    frame, ancillary, _, _ = frames.recvmsg(2000, 64)
    port = int.from_bytes(frame[36:38], "big") if len(frame) > 42 else 0
    if port in kept:
        kept[port] += 1
        seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
        out.write(struct.pack("<IIII", seconds, nanoseconds, len(frame), len(frame)) + frame)
out.close()
"""


def capture(namespaces, tmp_path, network):  # noqa: F811 - the fixture
    rig = write_rig(
        tmp_path,
        SCENE + '[[sensor]]\nname = "roof"\nunit = "ideal"\ngps = { latitude_deg = 36.8, longitude_deg = -2.4 }\n[sensor.network]\n' + network,
    )
    path = tmp_path / "wire.pcap"
    sniffer = subprocess.Popen(["ip", "netns", "exec", namespaces[1], sys.executable, "-c", _SNIFFER, str(path)], stdout=subprocess.PIPE)
    daemon = None
    try:
        assert sniffer.stdout.readline() == b"ready\n"
        daemon = subprocess.Popen(["ip", "netns", "exec", namespaces[0], sys.executable, "-m", "hilsim", "run", str(rig)], stderr=subprocess.DEVNULL)
        assert sniffer.wait(120) == 0
    finally:
        for process in filter(None, (daemon, sniffer)):
            process.terminate()
            process.wait(20)
        sniffer.stdout.close()
    return path


def told(path):
    """Rules by severity, without those of arrival: this host may be busy."""
    (sensor,) = check(CaptureFile(path)).sensors
    kept = [finding for finding in sensor.findings if not finding.rule.startswith(("spacing", "time.lost"))]
    return sensor, {severity: {finding.rule for finding in kept if finding.severity == severity} for severity in ("error", "warning", "note")}


def test_a_capture_of_ordinary_sockets_has_no_errors_and_says_that_the_headers_are_not_the_sensors(namespaces, tmp_path):  # noqa: F811
    sensor, rules = told(capture(namespaces, tmp_path, 'source = "192.168.1.201"\ndestination = "192.168.1.77"\n'))
    assert (rules["error"], rules["warning"]) == (set(), set())
    assert (sensor.summary.headers, rules["note"] - {"header.source_port"}) == ("foreign", {"header.own", "header.offload"})
    (offload,) = [finding for finding in sensor.findings if finding.rule == "header.offload"]
    assert "position packets carry the partial UDP checksum of a capture on the sending host" in offload.message


def test_a_capture_of_raw_frames_is_judged_by_its_headers_and_passes(namespaces, tmp_path):  # noqa: F811
    network = (
        'mode = "ethernet"\ninterface = "sensor0"\nsource = "192.168.1.201"\ndestination = "255.255.255.255"\nbroadcast = true\n'
        'source_mac = "60:76:88:10:2f:6f"\n'
    )
    sensor, rules = told(capture(namespaces, tmp_path, network))
    assert (sensor.summary.headers, rules) == ("sensor", {"error": set(), "warning": set(), "note": set()})
