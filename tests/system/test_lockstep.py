"""``hilsim run`` in lockstep: the packets on the wire are those of the same poses offline, whatever the partner's speed, pauses and end."""

import json
import subprocess
import sys
import time

import pytest

import hilsim
from hilsim import Motion
from tests.system.conftest import sensor_table

pytestmark = [pytest.mark.extended, pytest.mark.system]

STEPS = 12
LOCKSTEP = '[platform]\nkind = "external"\n[external]\nlisten = "udp:127.0.0.1:0"\ntime = "lockstep"\npace = "at once"\nrestart = "{restart}"\n'
PARTNER = """
import random, socket, struct, sys, time

HEADER, POSE = struct.Struct("<4sBBHIIIIq"), struct.Struct("<II3d4d3f3f8x")
port, sender, first, last, seed = (int(word) for word in sys.argv[1:])
draw, sequence = random.Random(seed), 0
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.connect(("127.0.0.1", port))
link.settimeout(60)
for number in range(first, last):
    time_ns = 20_000_000 * (number - first)
    pose = POSE.pack(0, 3, 0.05 * number, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0, 2.5, 0.0, 0.0, 0.0, 0.0, 0.0)
    link.send(HEADER.pack(b"HSXP", 1, 1, 1, sender, sequence, 0, 0, time_ns) + pose)
    link.send(HEADER.pack(b"HSXP", 1, 4, 0, sender, sequence + 1, 0, 0, time_ns))
    sequence += 2
    answer = HEADER.unpack(link.recv(100))
    assert (answer[2], answer[8]) == (5, time_ns), answer
    print(number, flush=True)
    time.sleep(draw.choice([0.0, 0.0, 0.003, 0.05]))
"""


def expected(path, steps=STEPS):
    """Payloads of the same poses by the emulator's steps: of data and position packets."""
    emulator, found = hilsim.Emulator(path), {"data": [], "position": []}
    for number in range(steps):
        motion = Motion(position_m=(0.05 * number, 0.0, 0.3), velocity_mps=(2.5, 0.0, 0.0), rates_radps=(0.0, 0.0, 0.0))
        for packet in emulator.step(round(0.02 * number, 9), platform=motion).packets:
            found[packet.stream].append(packet.payload)
    return found


def partner(port, sender, first, last, seed=0):
    return subprocess.Popen([sys.executable, "-c", PARTNER, *map(str, (port, sender, first, last, seed))], stdout=subprocess.PIPE, text=True)


def finished(process):
    process.communicate(timeout=120)
    assert process.returncode == 0


@pytest.fixture
def lockstep(daemon, rig, receiver):
    """Starts a rig in lockstep; gives its path, its port and what is received from it."""

    def make(restart):
        data, position = receiver(), receiver()
        path = rig(LOCKSTEP.format(restart=restart), sensor_table("roof", data.port, position.port))
        running = daemon(path, wait=False)
        port = int(running.await_log(r'"address": "udp:127\.0\.0\.1:(\d+)"').group(1))

        def received():
            return {name: [payload for payload, _ in link.drain()] for name, link in (("data", data), ("position", position))}

        return path, running, port, received

    return make


def test_packets_are_the_same_at_ten_speeds_of_partners_that_begin_again(lockstep):
    path, running, port, received = lockstep("again")
    wanted = expected(path)
    assert len(wanted["data"]) > 150
    for seed in range(10):
        finished(partner(port, 100 + seed, 0, STEPS, seed))
        assert received() == wanted
    code, _ = running.stop()
    assert code == 0
    (ended,) = (json.loads(line) for line in running.text().splitlines() if '"lockstep.stopped"' in line)
    assert (ended["steps"], ended["partners"], ended["refused"], ended["not_sent"]) == (10 * STEPS, 10, 0, 0)


def test_a_killed_partner_is_followed_by_another_one_without_a_gap(lockstep):
    path, running, port, received = lockstep("continue")
    with partner(port, 1, 0, 10_000) as first:
        for line in first.stdout:
            if int(line) >= 4:
                break
        first.kill()
    sent = received()
    deadline = time.monotonic() + 60
    while True:  # how far it had come is known by the packets: one is of a step that it did not see answered
        for name, payloads in received().items():
            sent[name].extend(payloads)
        steps = next(count for count in range(5, 10_000) if len(expected(path, count)["data"]) >= len(sent["data"]))
        if expected(path, steps) == sent:
            break
        assert time.monotonic() < deadline
    finished(partner(port, 2, steps - 1, STEPS + steps))
    more, wanted = received(), expected(path, STEPS + steps)
    assert {name: sent[name] + more[name] for name in sent} == wanted
    assert running.stop()[0] == 0
    assert '"lockstep.partner_began"' in running.text()
