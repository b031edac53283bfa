"""Two hosts, each in a network namespace of its own, emulate one rig in step for a third that receives."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from hilsim.api.emulator import Emulator
from hilsim.config.rig import load_rig
from tests.support import write_rig
from tests.system.conftest import SCENE

pytestmark = [
    pytest.mark.extended,
    pytest.mark.system,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2 to make network namespaces"),
]

HOSTS = {"front": ("192.168.41.201", "192.168.41.77"), "rear": ("192.168.42.201", "192.168.42.77")}
MIN_PACKETS = "400"
"""Packets of each that are received."""

_RECEIVER = """
import socket, struct, sys, time
data = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
data.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
data.bind(("0.0.0.0", 2368))
data.settimeout(120)
print("ready", flush=True)
kept = {address: [] for address in sys.argv[3:]}
while min(map(len, kept.values())) < int(sys.argv[2]):
    payload, (address, _) = data.recvfrom(2000)
    kept[address].append((time.time_ns(), payload))
with open(sys.argv[1], "wb") as out:
    for address, packets in kept.items():
        for stamp_ns, payload in packets:
            out.write(struct.pack("<4sQH", socket.inet_aton(address), stamp_ns, len(payload)) + payload)
"""


def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def network():
    """Names of the namespaces of the host that receives and of the two that send, with a cable to each."""
    receiver, *senders = names = [f"hilsim-{os.getpid()}-{side}" for side in ("receiver", *HOSTS)]
    with contextlib.ExitStack() as made:
        for name in names:
            ip("netns", "add", name)
            made.callback(ip, "netns", "delete", name)
            ip("-n", name, "link", "set", "lo", "up")
        for number, (sender, (source, destination)) in enumerate(zip(senders, HOSTS.values(), strict=True)):
            ip("-n", sender, "link", "add", "cable", "type", "veth", "peer", "name", f"cable{number}", "netns", receiver)
            for name, interface, address in ((sender, "cable", source), (receiver, f"cable{number}", destination)):
                ip("-n", name, "address", "add", f"{address}/24", "dev", interface)
                ip("-n", name, "link", "set", interface, "up")
        until_s = time.monotonic() + 60
        while ip("-n", receiver, "-o", "link", "show").count(" state UP ") < len(HOSTS):
            assert time.monotonic() < until_s
            time.sleep(0.01)
        yield receiver, senders


def received(path):
    """Arrivals (UTC, ns) and payloads by source address."""
    data, at, found = path.read_bytes(), 0, {}
    while at < len(data):
        address, stamp_ns, size = (
            ".".join(map(str, data[at : at + 4])),
            int.from_bytes(data[at + 4 : at + 12], "little"),
            data[at + 12] | data[at + 13] << 8,
        )
        found.setdefault(address, []).append((stamp_ns, data[at + 14 : at + 14 + size]))
        at += 14 + size
    return found


def test_two_hosts_send_one_world_in_step(network, tmp_path):
    receiver, senders = network
    epoch = (datetime.now(UTC) - timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    sensors = "".join(
        f'[[sensor]]\nname = "{name}"\nprofile = "{profile}"\n[sensor.network]\nsource = "{source}"\ndestination = "{destination}"\n'
        for (name, (source, destination)), profile in zip(HOSTS.items(), ("vlp16", "hdl32e"), strict=True)
    )
    rig = write_rig(tmp_path, SCENE + f'[transmit]\nlate_policy = "send"\nepoch_utc = "{epoch}"\n' + sensors)
    arrivals = tmp_path / "arrivals"
    running = []
    try:
        sources = [source for source, _ in HOSTS.values()]
        running.append(
            subprocess.Popen(
                ["ip", "netns", "exec", receiver, sys.executable, "-c", _RECEIVER, str(arrivals), MIN_PACKETS, *sources], stdout=subprocess.PIPE
            )
        )
        assert running[0].stdout.readline() == b"ready\n"
        for name, sender in zip(HOSTS, senders, strict=True):
            command = ["ip", "netns", "exec", sender, sys.executable, "-m", "hilsim", "run", str(rig), "--only", name]
            running.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        assert running[0].wait(240) == 0
    finally:
        for process in running:
            process.terminate()
            process.wait(20)
        running[0].stdout.close()
    loaded = load_rig(rig)
    epoch_ns = loaded.spec.transmit.epoch_utc_ns
    found = received(arrivals)
    first_s = min(stamp_ns - epoch_ns for packets in found.values() for stamp_ns, _ in packets) / 1e9
    last_s = max(stamp_ns - epoch_ns for packets in found.values() for stamp_ns, _ in packets) / 1e9
    assert first_s > 3_600.0
    emulated = {}
    for packet in Emulator(loaded).packets(first_s - 1.0, last_s + 0.1):
        if packet.destination[1] == 2368:
            emulated.setdefault(packet.source[0], []).append((epoch_ns + packet.time_ns, packet.payload))
    assert found.keys() == emulated.keys()
    for address, packets in found.items():
        payloads = [payload for _, payload in emulated[address]]
        begin = payloads.index(packets[0][1])
        assert [payload for _, payload in packets] == payloads[begin : begin + len(packets)]
        early_ns = [due_ns - stamp_ns for (stamp_ns, _), (due_ns, _) in zip(packets, emulated[address][begin:], strict=False)]
        assert max(early_ns) < 1_000_000  # the host's UTC may be set by a little meanwhile
