"""Timed changes beside lidars and a replay: what they cost the packet path, and how soon packets show them.

    python bench/bench_changes.py [--seconds 60] [--rate 50] [--client waiting|socket|websocket] [--busy] [--json FILE]

One daemon sends three VLP-16s (one, seven and one rays a beam) in the demo street and replays a capture. Stretches with changes of every kind at ``--rate``
a second and stretches without take turns, ten seconds each. Reported for both: how late data packets left (the daemon's own histogram), packets late,
dropped or not rendered; the daemon's memory at the beginning and the end; the time from a request to its answer, and to its beginning in rig time.
The client waits for each answer, or sends requests at ``--rate`` whatever has been answered, over the Unix socket or over a WebSocket.
A thread receives the lidars' data packets all the while, and counts those that are missing between two neighbours, by their time stamps.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import aiohttp
from bench_gazebo import cost_of, late_p99_us, metrics
from bench_timing import burners, describe_machine

import hilsim

START_S = 180.0
STRETCH_S = 10.0
SENSORS = 3
HTTP_PORT = 24190
PACKET_US = 24 * 55.296
SENSOR = """
[[sensor]]
name = "{name}"
profile = "vlp16"
mount_position_m = [{x}, 0.0, 1.9]
sub_rays = {rays}
[sensor.network]
source = "127.0.1.{host}"
destination = "127.0.0.1"
source_ports = "any"
data_port = {port}
position_port = {position}
"""
COUNTERS = (
    "hilsim_late_packets_total",
    "hilsim_dropped_packets_total",
    "hilsim_render_skipped_packets_total",
    "hilsim_render_ring_full_packets_total",
)


def write_rig(folder):
    """Three lidars in the demo street, and a replay of a capture that is recorded here; returns the rig's path."""
    hilsim.record("demo", folder / "drive.pcap", duration_s=5.0)
    sensors = [
        SENSOR.format(name=f"lidar{n}", x=-float(n), rays=rays, host=210 + n, port=24000 + 2 * n, position=24001 + 2 * n)
        for n, rays in enumerate((1, 7, 1))
    ]
    head = 'name = "changes"\nseed = 4\nlead_ms = 8.0\n[scene]\ngenerator = "street"\n[platform]\nkind = "street"\n'
    replay = '[[replay]]\nname = "drive"\nfile = "drive.pcap"\ndestination = "127.0.0.1"\ndestination_port = 24100\nloop = "seamless"\n'
    path = folder / "changes.toml"
    path.write_text(
        head + "".join(sensors) + replay + f'[metrics]\nport = 0\n[control]\nsocket = "control"\nhttp = "127.0.0.1:{HTTP_PORT}"\n', encoding="utf-8"
    )
    return path


def change(chance, number):
    """A change of any kind but adding: fifty objects a second would fill the street."""
    place = [chance.uniform(-20.0, 20.0), chance.uniform(-30.0, -20.0), 1.0]
    kinds = (
        {"kind": "move", "name": f"crate{number % 5}", "position_m": place, "rotation_deg": [0.0, 0.0, chance.uniform(-180.0, 180.0)]},
        {"kind": "move", "name": f"crate{(number + 1) % 5}", "position_m": place},
        {"kind": "weather", "weather": {"fog_visibility_m": chance.uniform(50.0, 500.0)}},
        {"kind": "sensor", "sensor": "lidar0", "window": {"soiling_transmission": chance.uniform(0.5, 1.0)}},
        {"kind": "sensor", "sensor": "lidar2", "return_mode": chance.choice(["strongest", "last"])},
    )
    return kinds[number % len(kinds)]


class Receiver(threading.Thread):
    """Receives the data packets of all lidars, and compares the time stamps of neighbours."""

    def __init__(self):
        super().__init__(daemon=True)
        self.received, self.missing, self._has_ended = 0, 0, False
        self._sockets = {}
        for number in range(SENSORS):
            receiving = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            receiving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)
            receiving.bind(("127.0.0.1", 24000 + 2 * number))
            self._sockets[receiving] = None

    def run(self):
        """Receive until ``end``."""
        packet = bytearray(2048)
        while not self._has_ended:
            for receiving in select.select(list(self._sockets), [], [], 0.1)[0]:
                receiving.recv_into(packet)
                stamp_us, former_us = int.from_bytes(packet[1200:1204], "little"), self._sockets[receiving]
                self._sockets[receiving] = stamp_us
                self.received += 1
                if former_us is not None:
                    self.missing += round((stamp_us - former_us) % 3_600_000_000 / PACKET_US) - 1

    def end(self):
        """Stop receiving."""
        self._has_ended = True
        self.join()


class SocketClient:
    """Sends requests over the Unix socket without waiting for answers."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("r", encoding="utf-8")

    def send(self, request):
        """Send a request."""
        self._socket.sendall(json.dumps(request).encode() + b"\n")

    def receive(self):
        """The next answer."""
        return json.loads(self._lines.readline())

    def close(self):
        """Close the connection."""
        self._socket.close()


class WebSocketClient:
    """Sends requests over a WebSocket without waiting for answers; the event loop has a thread of its own."""

    def __init__(self, address, token):
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._stream = self._run(self._connect(address, token))

    async def _connect(self, address, token):
        self._session = aiohttp.ClientSession()
        return await self._session.ws_connect(f"{address}/v1/stream", headers={"Authorization": f"Bearer {token}"})

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30.0)

    def send(self, request):
        """Send a request."""
        self._run(self._stream.send_json(request))

    def receive(self):
        """The next answer."""
        return self._run(self._stream.receive_json())

    def close(self):
        """Close the connection."""
        self._run(self._session.close())


def add_crates(control):
    """Add the objects that changes move."""
    for crate in range(5):
        control.change("add", box={"name": f"crate{crate}", "size_m": [1.0, 1.0, 2.0], "position_m": [5.0 + crate, -22.0, 1.0]})
    time.sleep(2.0)


def connected(kind, folder):
    """A client that does not wait for answers; None: one that waits is asked for."""
    if kind == "waiting":
        return None
    if kind == "socket":
        return SocketClient(folder / "control")
    return WebSocketClient(f"http://127.0.0.1:{HTTP_PORT}", (folder / "control.token").read_text().strip())


def streamed_stretch(client, control, address, chance, rate_hz):
    """As ``stretch``, of a client that does not wait: a thread takes the answers."""
    begin_s = epoch_s(control)
    before, begun_s = metrics(address), time.monotonic()
    asked_s, waits_s, ahead_s = [], [], []

    def take(count):
        for number in range(count):
            answer = client.receive()
            if not answer["ok"]:
                raise AssertionError(answer["error"])
            waits_s.append(time.monotonic() - asked_s[number])
            ahead_s.append(max(answer["sensors"].values(), default=answer["at_s"]) + begin_s - asked_s[number])

    count = round(rate_hz * STRETCH_S)
    taker = threading.Thread(target=take, args=(count,))
    taker.start()
    for number in range(count):
        time.sleep(max(begun_s + number / rate_hz - time.monotonic(), 0.0))
        asked_s.append(time.monotonic())
        client.send({"id": number, "do": "change", "change": change(chance, number)})
    taker.join()
    time.sleep(max(begun_s + STRETCH_S - time.monotonic(), 0.0))
    return before, metrics(address), waits_s, ahead_s, count


def epoch_s(control):
    """CLOCK_MONOTONIC time of rig time 0, to the tenth of a millisecond: the nearest of some looks, between asking and the answer."""
    looks = []
    for _ in range(20):
        asked_s = time.monotonic()
        rig_s = control.state()["rig_s"]
        looks.append((time.monotonic() - asked_s, asked_s - rig_s))
    return min(looks)[1]


def stretch(control, address, chance, rate_hz):
    """Ten seconds, with changes or without; counters before and after, and how long each change took (s)."""
    before, begun_s = metrics(address), time.monotonic()
    waits_s, ahead_s, number = [], [], 0
    begin_s = epoch_s(control) if rate_hz else 0.0
    while (now_s := time.monotonic()) - begun_s < STRETCH_S:
        if rate_hz and number < rate_hz * (now_s - begun_s):
            asked_s = time.monotonic()
            times = control.change(**change(chance, number))
            waits_s.append(time.monotonic() - asked_s)
            ahead_s.append(max(times.sensors.values(), default=times.at_s) + begin_s - asked_s)
            number += 1
        else:
            time.sleep(0.002)
    return before, metrics(address), waits_s, ahead_s, number


def grown(before, after, name):
    """Growth of a counter over all its labels."""
    return sum(value - before.get(key, 0.0) for key, value in after.items() if key.startswith(name))


def main():
    """Measure, print, store."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--client", choices=["waiting", "socket", "websocket"], default="waiting")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    chance = random.Random(1)
    rows = {"quiet": [], "changing": []}
    with tempfile.TemporaryDirectory() as name, burners(600) if arguments.busy else contextlib.nullcontext():
        folder = Path(name)
        ready = folder / "ready.json"
        command = [
            sys.executable,
            "-m",
            "hilsim",
            "run",
            str(write_rig(folder)),
            "--quiet",
            "--ready-file",
            str(ready),
            "--end-with",
            str(os.getpid()),
        ]
        daemon = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            until_s = time.monotonic() + START_S
            while not ready.exists():
                if time.monotonic() > until_s or daemon.poll() is not None:
                    sys.exit("the daemon did not start")
                time.sleep(0.1)
            address = json.loads(ready.read_text())["metrics"]
            control = hilsim.connect(folder / "control")
            add_crates(control)
            client = connected(arguments.client, folder)
            play = partial(streamed_stretch, client) if client else stretch
            receiver = Receiver()
            receiver.start()
            memory = [cost_of(daemon.pid)[0]]
            waits_s, ahead_s, changes = [], [], 0
            for _ in range(max(round(arguments.seconds / STRETCH_S / 2), 1)):
                for kind, rate_hz in (("quiet", 0.0), ("changing", arguments.rate)):
                    before, after, waits, ahead, count = (play if rate_hz else stretch)(control, address, chance, rate_hz)
                    lost = {name: grown(before, after, name) for name in COUNTERS}
                    rows[kind].append({"p99_us": late_p99_us(before, after), "sent": grown(before, after, "hilsim_sent_packets_total"), **lost})
                    waits_s, ahead_s, changes = waits_s + waits, ahead_s + ahead, changes + count
            memory.append(cost_of(daemon.pid)[0])
            receiver.end()
            if client:
                client.close()
        finally:
            daemon.terminate()
            daemon.wait()
    result = {
        "machine": describe_machine(),
        "busy": arguments.busy,
        "client": arguments.client,
        "received": receiver.received,
        "missing": receiver.missing,
        "changes": changes,
        "request_ms": {"median": 1e3 * statistics.median(waits_s), "p99": 1e3 * sorted(waits_s)[int(0.99 * len(waits_s))]},
        "ahead_ms": {"median": 1e3 * statistics.median(ahead_s), "p99": 1e3 * sorted(ahead_s)[int(0.99 * len(ahead_s))], "most": 1e3 * max(ahead_s)},
        "memory_mb": [round(each / 1e6, 1) for each in memory],
        **rows,
    }
    for kind, stretches in rows.items():
        print(
            kind,
            *(
                f"p99 {row['p99_us']:.0f} us, sent {row['sent']:.0f}, lost {sum(row[name] for name in COUNTERS[1:]):.0f}, late {row[COUNTERS[0]]:.0f}"
                for row in stretches
            ),
            sep="\n  ",
        )
    print(f"{result['received']} data packets received, {result['missing']} missing between them")
    print(f"{changes} changes: answered in {result['request_ms']['median']:.1f} ms (p99 {result['request_ms']['p99']:.1f})")
    print(
        f"begin {result['ahead_ms']['median']:.1f} ms of rig time after they were asked for (p99 {result['ahead_ms']['p99']:.1f}, at most {result['ahead_ms']['most']:.1f}); memory {result['memory_mb']} MB"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
