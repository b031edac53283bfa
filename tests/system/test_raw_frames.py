"""Raw Ethernet mode and broadcast, from the daemon over a pair of virtual interfaces between two network namespaces of its own."""

import contextlib
import os
import shutil
import subprocess
import sys
import time

import dpkt
import pytest

from tests.support import write_rig
from tests.system.conftest import SCENE

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2 to make network namespaces"),
]

_RECEIVER = """
import socket, struct, sys, time
frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
frames.bind(("receive0", 0))
frames.settimeout(60)
print("ready", flush=True)
out = open(sys.argv[1], "wb")
kept = {2368: 0, 8308: 0}
while min(kept.values()) < 20:
    frame = frames.recv(2000)
    port = int.from_bytes(frame[36:38], "big") if len(frame) > 42 else 0
    if port in kept:
        kept[port] += 1
        out.write(struct.pack("<I", len(frame)) + frame)
"""


_SOCKETS = """
import socket, struct, sys
ports = {}
for port in (2368, 8308):
    ports[port] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ports[port].bind(("", port))
    ports[port].settimeout(60)
print("ready", flush=True)
with open(sys.argv[1], "wb") as out:
    for _ in range(60):
        payload = ports[2368].recv(3000)
        out.write(struct.pack("<I", len(payload)) + payload)
    ports[8308].settimeout(0.0)
    try:
        payload = ports[8308].recv(3000)
        out.write(struct.pack("<I", len(payload)) + payload)
    except BlockingIOError:
        pass
"""


@pytest.fixture
def namespaces():
    names = [f"hilsim-{os.getpid()}-{side}" for side in ("sensor", "host")]

    def ip(*words):
        return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout

    with contextlib.ExitStack() as made:
        for name in names:
            ip("netns", "add", name)
            made.callback(ip, "netns", "delete", name)
        ip("-n", names[0], "link", "add", "sensor0", "type", "veth", "peer", "name", "receive0", "netns", names[1])
        for name, interface, address in zip(names, ("sensor0", "receive0"), ("192.168.1.201/24", "192.168.1.77/24"), strict=True):
            ip("-n", name, "address", "add", address, "dev", interface)
            ip("-n", name, "link", "set", interface, "up")
            ip("-n", name, "link", "set", "lo", "up")
        until_s = time.monotonic() + 60
        for name, interface in zip(names, ("sensor0", "receive0"), strict=True):
            while " state UP " not in ip("-n", name, "-o", "link", "show", "dev", interface):  # it drops what is sent before its peer is up
                assert time.monotonic() < until_s
                time.sleep(0.01)
        yield names


def frames_of(path):
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def receive(namespaces, tmp_path, network, program=_RECEIVER, faults=""):
    """What a program in the receiver's namespace gets of a daemon in the sensor's."""
    rig = write_rig(
        tmp_path, SCENE + faults + '[[sensor]]\nname = "roof"\ngps = { latitude_deg = 36.8, longitude_deg = -2.4 }\n[sensor.network]\n' + network
    )
    path = tmp_path / "frames"
    receiver = subprocess.Popen(["ip", "netns", "exec", namespaces[1], sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE)
    daemon = None
    try:
        assert receiver.stdout.readline() == b"ready\n"
        daemon = subprocess.Popen(["ip", "netns", "exec", namespaces[0], sys.executable, "-m", "hilsim", "run", str(rig)], stderr=subprocess.DEVNULL)
        assert receiver.wait(120) == 0
    finally:
        for process in filter(None, (daemon, receiver)):
            process.terminate()
            process.wait(20)
        receiver.stdout.close()
    return frames_of(path)


def received(namespaces, tmp_path, network):
    raw = receive(namespaces, tmp_path, network)
    return [dpkt.ethernet.Ethernet(frame) for frame in raw], raw


def test_raw_frames_carry_the_real_sensors_headers_bit_for_bit(namespaces, tmp_path):
    network = (
        'mode = "ethernet"\ninterface = "sensor0"\nsource = "192.168.1.201"\ndestination = "255.255.255.255"\nbroadcast = true\n'
        'source_mac = "60:76:88:10:2f:6f"\n'
    )
    parsed, raw = received(namespaces, tmp_path, network)
    for ethernet, frame in zip(parsed, raw, strict=True):
        ip = ethernet.data
        data = ip.data.dport == 2368
        assert frame[:12] == b"\xff" * 6 + bytes.fromhex("607688102f6f")
        assert (ip.ttl, frame[20:22], ip.data.sport) == ((255, b"\x40\x00", 2368) if data else (64, b"\x00\x00", 8308))
        assert len(frame) == (1248 if data else 554)
        assert (ip.id == 0) == data
        assert (ip.data.sum == 0) == data
        written = ip.sum, ip.data.sum
        ip.sum = 0
        if not data:
            ip.data.sum = 0
        bytes(ip)  # dpkt fills in checksums that are 0
        assert ip.sum == written[0]
        assert data or ip.data.sum == written[1]
    identifications = [ethernet.data.id for ethernet in parsed if ethernet.data.data.dport == 8308]
    assert identifications == list(range(identifications[0], identifications[0] + len(identifications)))


@pytest.mark.extended
@pytest.mark.parametrize(
    ("destination", "network"),
    [
        ("255.255.255.255", 'destination = "255.255.255.255"\nbroadcast = true\ninterface = "sensor0"\n'),
        ("192.168.1.255", 'destination = "192.168.1.255"\nbroadcast = true\n'),
        ("192.168.1.77", 'destination = "192.168.1.77"\n'),
        ("239.1.2.3", 'destination = "239.1.2.3"\ninterface = "sensor0"\n'),
    ],
)
def test_udp_mode_reaches_every_kind_of_destination_with_the_sensors_ttl_flag_and_ports(namespaces, tmp_path, destination, network):
    parsed, _ = received(namespaces, tmp_path, 'source = "192.168.1.201"\n' + network)
    data = [ethernet.data for ethernet in parsed if ethernet.data.data.dport == 2368]
    assert {".".join(map(str, ip.dst)) for ip in data} == {destination}
    assert {(ip.ttl, ip.df, ip.data.sport, ip.data.sum) for ip in data} == {(255, 1, 2368, 0)}


@pytest.mark.extended
def test_a_kernel_puts_fragments_together_again_and_discards_wrong_checksums(namespaces, tmp_path):
    network = 'mode = "ethernet"\ninterface = "sensor0"\nsource = "192.168.1.201"\ndestination = "255.255.255.255"\nbroadcast = true\n'
    fragments = '[[fault]]\nkind = "fragments"\non = "roof/data"\n'
    spoilt = '[[fault]]\nkind = "bad_checksum"\non = "roof/position"\nshare = 1.0\n'
    found = receive(namespaces, tmp_path, network, _SOCKETS, fragments + spoilt)
    assert [len(payload) for payload in found] == [1206] * 60
    assert {payload[1204:] for payload in found} == {found[0][1204:]}
    intact = receive(namespaces, tmp_path, network, _SOCKETS)
    assert [len(payload) for payload in intact] == [1206] * 60 + [512]
