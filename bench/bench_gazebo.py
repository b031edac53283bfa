"""Gazebo's subscribers beside a lidar: what they get, and what they cost the packet path.

    python bench/bench_gazebo.py [--seconds 20] [--busy] [--json FILE]

One daemon sends the demo's VLP-16 and publishes a lidar of 1800 x 16 rays at 20 Hz from an SDF file. It is watched, each for ``--seconds``, without a subscriber, with one that
takes every scan and its points, and with that one and two more of which one is stopped (SIGSTOP) and one killed half way. Reported: the subscriber's rate and losses, how late the
lidar's packets left (the daemon's own histogram), and the daemon's memory and processor time.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from bench_timing import burners, describe_machine

from hilsim.protocols.protobuf import fields

START_S = 180.0
PERIOD_NS = 50_000_000
WORLD = """<?xml version="1.0"?><sdf version="1.9"><world name="bench">
<model name="robot"><pose>0 0 1.5 0 0 0</pose><link name="link"><sensor name="scanner" type="gpu_lidar"><topic>/scan</topic><update_rate>20</update_rate>
<lidar><scan><horizontal><samples>1800</samples><min_angle>-3.1416</min_angle><max_angle>3.1416</max_angle></horizontal>
<vertical><samples>16</samples><min_angle>-0.26</min_angle><max_angle>0.26</max_angle></vertical></scan><range><min>0.1</min><max>100</max></range>
<noise><stddev>0.01</stddev></noise></lidar></sensor></link></model></world></sdf>
"""
_SUBSCRIBER = """
import sys, time, zmq
address, topics, kind = sys.argv[1], sys.argv[2].split(","), sys.argv[3]
socket = zmq.Context().socket(zmq.SUB)
socket.connect(address)
for topic in topics:
    socket.setsockopt(zmq.SUBSCRIBE, topic.encode())
print("ready", flush=True)
until = time.monotonic() + float(sys.argv[4])
out = open(sys.argv[5], "w")
while time.monotonic() < until:
    if socket.poll(100):
        parts = socket.recv_multipart()
        print(time.monotonic_ns(), parts[0].decode(), parts[2][:80].hex(), file=out)
"""


def write_rig(directory):
    """The demo with an SDF file in its scene; returns its path."""
    (directory / "bench.sdf").write_text(WORLD, encoding="utf-8")
    demo = (Path(__file__).parent.parent / "profiles" / "rigs" / "demo.toml").read_text(encoding="utf-8")
    path = directory / "gazebo.toml"
    path.write_text(demo.replace("[scene]\n", '[scene]\nsdf = "bench.sdf"\n', 1) + '\n[gazebo]\npartition = "bench"\n', encoding="utf-8")
    return path


def metrics(address):
    """Figures of the daemon by their text up to the value."""
    with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 - http, loopback
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))}


def late_p99_us(before, after):
    """99th percentile of how late data packets left, as far as the histogram's buckets tell."""
    prefix = "hilsim_lateness_seconds_bucket{"
    grown = {}
    for name, value in after.items():
        if name.startswith(prefix) and 'flow="data"' in name:
            bound = float(name.split('le="')[1].split('"')[0])
            grown[bound] = grown.get(bound, 0.0) + value - before.get(name, 0.0)
    total = grown.get(float("inf"), 0.0)
    return next((bound * 1e6 for bound in sorted(grown) if grown[bound] >= 0.99 * total), float("nan"))


def cost_of(pid):
    """Resident bytes and processor seconds of a process."""
    resident = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE")
    words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return resident, (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def address_of(pid):
    """Where a daemon publishes: the TCP port that it listens at and metrics are not served at."""
    text = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout
    return [line.split()[3].rpartition(":")[2] for line in text.splitlines() if f"pid={pid}," in line]


def judged(path, seconds):
    """Rate and losses of each topic that a subscriber wrote down."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        stamp_ns, topic, head = line.split()
        content = bytes.fromhex(head)
        size = content[1]
        header = dict(fields(content[2 : 2 + size]))
        stamp = dict(fields(header[1]))
        found.setdefault(topic, []).append((int(stamp_ns), stamp.get(1, 0) * 10**9 + stamp.get(2, 0)))
    rows = {}
    for topic, times in found.items():
        span_ns = times[-1][1] - times[0][1]
        rows[topic] = {
            "messages": len(times),
            "rate_hz": (len(times) - 1) / (times[-1][0] - times[0][0]) * 1e9,
            "lost": span_ns // PERIOD_NS + 1 - len(times),
        }
    return rows | {"seconds": seconds}


class Watched:
    """A daemon under watch."""

    def __init__(self, directory, daemon, metrics_url, publishes):
        self.directory, self.daemon, self.url, self.publishes = directory, daemon, metrics_url, publishes
        self.subscribers = []

    def subscribe(self, name, topics, seconds):
        """A subscriber in a process of its own; returns it and what it writes."""
        out = self.directory / f"{name}.txt"
        wire = ",".join(f"@/bench@{topic}" for topic in topics)
        command = [sys.executable, "-c", _SUBSCRIBER, self.publishes, wire, name, str(seconds), str(out)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        process.stdout.readline()
        self.subscribers.append(process)
        return process, out

    def watch(self, label, seconds, half_way=lambda: None):
        """Figures of a while."""
        before, (_, begun_s) = metrics(self.url), cost_of(self.daemon.pid)
        time.sleep(seconds / 2)
        half_way()
        time.sleep(seconds / 2)
        after, (resident, ended_s) = metrics(self.url), cost_of(self.daemon.pid)

        def grown(name):
            return sum(value - before.get(key, 0.0) for key, value in after.items() if key.startswith(f"{name}{{"))

        return {
            "with": label,
            "late_p99_us": late_p99_us(before, after),
            "late_packets": grown("hilsim_late_packets_total"),
            "dropped_packets": grown("hilsim_dropped_packets_total"),
            "skipped_scans": grown("hilsim_gazebo_skipped_scans_total"),
            "resident_mb": resident / 1e6,
            "cores": (ended_s - begun_s) / seconds,
        }

    def close(self):
        """End the subscribers."""
        for process in self.subscribers:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
            process.stdout.close()


def main():
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--busy", action="store_true", help="beside as many busy processes as there are cores")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print(", ".join(f"{key} {value}" for key, value in describe_machine().items()))
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        directory = Path(place)
        rig, ready = write_rig(directory), directory / "ready.json"
        command = [sys.executable, "-m", "hilsim", "run", str(rig), "--quiet", "--ready-file", str(ready), "--set", "metrics.port=0"]
        daemon = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        stack.callback(daemon.wait, 20)
        stack.callback(daemon.terminate)
        until_s = time.monotonic() + START_S
        while not ready.exists():
            if daemon.poll() is not None or time.monotonic() > until_s:
                sys.exit("the daemon did not start")
            time.sleep(0.05)
        if given.busy:
            stack.enter_context(burners(3 * given.seconds + 30))
        url = json.loads(ready.read_text(encoding="utf-8"))["metrics"]
        port = next(port for port in address_of(daemon.pid) if f":{port}/" not in url)
        watched = Watched(directory, daemon, url, f"tcp://127.0.0.1:{port}")
        stack.callback(watched.close)
        time.sleep(2.0)
        rows = [watched.watch("no subscriber", given.seconds)]
        _, out = watched.subscribe("steady", ("/scan", "/scan/points"), 2 * given.seconds)
        rows.append(watched.watch("a subscriber", given.seconds))
        stopped, _ = watched.subscribe("stopped", ("/scan",), 1e6)
        killed, _ = watched.subscribe("killed", ("/scan/points",), 1e6)
        time.sleep(0.5)
        stopped.send_signal(signal.SIGSTOP)
        rows.append(watched.watch("one stopped, one killed", given.seconds, killed.kill))
        watched.subscribers[0].wait(60)
        heard = judged(out, given.seconds)
    names = list(rows[0])
    print("  ".join(f"{name:>24}" if name == "with" else f"{name:>15}" for name in names))
    for row in rows:
        print("  ".join(f"{row[name]:>24}" if name == "with" else f"{row[name]:>15.3g}" for name in names))
    for topic, row in heard.items():
        if isinstance(row, dict):
            print(f"{topic}: {row['messages']} messages, {row['rate_hz']:.4f} Hz, {row['lost']} lost")
    if given.json:
        given.json.write_text(json.dumps({"rows": rows, "heard": heard}, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
