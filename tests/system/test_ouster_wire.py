"""An emulated Ouster over a wire with an MTU of 1500 bytes: two network namespaces, the vendor's client on one side, the daemon on the other."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict

import pytest

from tests.interop.ouster_judge import PYTHON, fault
from tests.support import write_rig
from tests.system.conftest import SCENE, START_TIMEOUT_S
from tests.system.test_raw_frames import frames_of, namespaces  # noqa: F401 - a fixture

pytestmark = [
    pytest.mark.alone,
    pytest.mark.system,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2 to make network namespaces"),
    pytest.mark.skipif(fault() is not None, reason="the vendor's ouster-sdk does not load here"),
]
SENSOR, HOST = "192.168.1.201", "192.168.1.77"
LIDAR_PACKET = 8448
FRAGMENTS = [1480] * 5 + [LIDAR_PACKET + 8 - 5 * 1480]

_RIG = f"""
[[sensor]]
name = "roof"
profile = "os1-32"
unit = "ideal"
sub_rays = 1
network = {{ source = "{SENSOR}", source_ports = "any", destination = "{HOST}" }}
ouster = {{ lidar_mode = "512x10", udp_profile_lidar = "RNG19_RFL8_SIG16_NIR16_DUAL" }}
web = {{ port = 80, boot_s = 0.1 }}
"""

_SNIFFER = """
import socket, struct, sys
frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
frames.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
frames.bind(("receive0", 0))
frames.settimeout(60)
print("ready", flush=True)
out = open(sys.argv[1], "wb")
kept = 0
while kept < 700:
    frame, address = frames.recvfrom(2000)
    if address[2] == socket.PACKET_HOST and len(frame) > 42 and frame[23] == 17:
        kept += 1
        out.write(struct.pack("<I", len(frame)) + frame)
"""


@contextlib.contextmanager
def started(namespace, *command, **options):
    process = subprocess.Popen(["ip", "netns", "exec", namespace, *map(str, command)], **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def await_event(process, log, event):
    deadline = time.monotonic() + START_TIMEOUT_S
    while event not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def fragments(frames):
    """IPv4 data of fragmented datagrams by identification: (bytes, flags, offset) of each fragment, in the order of arrival."""
    found = defaultdict(list)
    for frame in frames:
        field = int.from_bytes(frame[20:22], "big")
        found[frame[18:20]].append((int.from_bytes(frame[16:18], "big") - 20, field >> 13, (field & 0x1FFF) * 8))
    return found


def test_the_vendors_client_reads_whole_frames_of_fragments_and_the_flags_are_a_real_units(namespaces, tmp_path):  # noqa: F811
    rig, log, captured = write_rig(tmp_path, SCENE + _RIG), tmp_path / "daemon.log", tmp_path / "frames"
    sensor, host = namespaces
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("proxy")}
    with log.open("wb") as errors, started(sensor, sys.executable, "-m", "hilsim", "run", rig, stderr=errors) as daemon:
        await_event(daemon, log, '"event": "daemon.started"')
        with started(host, sys.executable, "-c", _SNIFFER, captured, stdout=subprocess.PIPE) as sniffer:
            assert sniffer.stdout.readline() == b"ready\n"
            command = ["ip", "netns", "exec", host, PYTHON.parent / "ouster-cli", "source", SENSOR, "slice", "0:20", "stats"]
            client = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=60)
            assert sniffer.wait(60) == 0
            sniffer.stdout.close()
    assert client.returncode == 0, client.stderr
    assert {"Count: 20", "Packet Count: 640", "Sizes: 512x32"} <= {line.strip() for line in client.stdout.split("\n")}, client.stdout
    assert "Incomplete Frames: 0" in client.stdout
    assert "0 missing lidar packets, 0 missing lidar columns" in client.stdout

    frames = frames_of(captured)
    flagged = [frame for frame in frames if frame[20] & 0x40]
    assert {(int.from_bytes(frame[36:38], "big"), int.from_bytes(frame[38:40], "big")) for frame in flagged} == {(7503, 48 + 8)}
    assert len(flagged) > 10
    assert {frame[22] for frame in frames} == {64}
    whole = list(fragments(frame for frame in frames if not frame[20] & 0x40).values())[1:-1]  # the capture begins and ends within a datagram
    assert len(whole) > 50
    assert {tuple(rows) for rows in whole} == {tuple((size, int(place < 5), 1480 * place) for place, size in enumerate(FRAGMENTS))}
