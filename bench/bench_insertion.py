"""Objects in recordings: how many times real time their packets are made, offline and in a daemon that sends them on time.

    python bench/bench_insertion.py CAPTURE... [--seconds 20] [--sub-rays 7] [--json FILE]

Each capture (PCAP of one Velodyne) gets a person who walks, two parked cars and a wall. It is played again and again, so that short captures count as long ones.
Offline: `hilsim.record`, reading, headers and writing included. Live: a daemon sends the looped capture to loopback for the time given; reported are its
packets late, dropped or read too late, the 99th percentile of lateness, and the share of a core that it used.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_gazebo import cost_of, late_p99_us, metrics
from bench_timing import describe_machine

import hilsim
from hilsim.capture.pcap import CaptureFile

START_S = 180.0
RIG = """
name = "insertion"
[metrics]
port = {port}
[[replay]]
name = "drive"
file = "{file}"
overlay = true
sub_rays = {sub_rays}
loop = "plain"
loops = {loops}
mount_position_m = [0.0, 0.0, 1.9]
[[scene.capsule]]
name = "person"
material = "clothing"
radius_m = 0.25
length_m = 1.3
[scene.capsule.motion]
loop = true
waypoints = [
    {{ time_s = 0.0, position_m = [5.5, -3.0, 0.9] }},
    {{ time_s = 4.0, position_m = [5.5, 3.0, 0.9] }},
    {{ time_s = 8.0, position_m = [5.5, -3.0, 0.9] }},
]
[[scene.box]]
name = "car"
material = "paint_red"
size_m = [4.3, 1.8, 1.5]
position_m = [9.5, -4.0, 0.75]
[[scene.box]]
name = "other car"
material = "paint_blue"
size_m = [4.3, 1.8, 1.5]
position_m = [-9.5, 4.0, 0.75]
[[scene.box]]
name = "wall"
material = "concrete"
size_m = [0.2, 6.0, 3.0]
position_m = [-15.0, -8.0, 1.5]
"""


def span_s(path):
    """Time from a capture's first packet to its last."""
    stamps = [datagram.host_stamp_ns for datagram in CaptureFile(path).datagrams()]
    return (stamps[-1] - stamps[0]) / 1e9


def offline(rig, directory, seconds):
    """Stream time that is written in a second."""
    hilsim.record(rig, directory / "warm.pcap", duration_s=0.5)
    begin_s = time.perf_counter()
    hilsim.record(rig, directory / "written.pcap", duration_s=seconds)
    took_s = time.perf_counter() - begin_s
    return span_s(directory / "written.pcap") / took_s


def live(rig, directory, port, seconds):
    """What a daemon reports after sending for a time."""
    ready = directory / "ready.json"
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "hilsim", "run", rig, "--ready-file", ready, "--quiet", "--end-with", str(os.getpid())]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_s = time.monotonic() + START_S
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > until_s:
                raise SystemExit(f"{rig}: the daemon did not start")
            time.sleep(0.1)
        address = f"http://127.0.0.1:{port}/metrics"
        before, cost = metrics(address), cost_of(process.pid)
        time.sleep(seconds)
        after, cost_after = metrics(address), cost_of(process.pid)
    finally:
        process.terminate()
        process.wait(30)

    def grown(name):
        return sum(value for key, value in after.items() if key.startswith(name)) - sum(
            value for key, value in before.items() if key.startswith(name)
        )

    return {
        "late": grown("hilsim_late_packets_total"),
        "dropped": grown("hilsim_dropped_packets_total"),
        "read_late": grown("hilsim_replay_late_packets_total"),
        "inserted_returns": grown("hilsim_replay_inserted_returns_total"),
        "late_p99_us": late_p99_us(before, after),
        "cores": round((cost_after[1] - cost[1]) / seconds, 3),
    }


def main():
    """Measure each capture and print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--sub-rays", type=int, default=7)
    parser.add_argument("--port", type=int, default=24191)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        for capture in options.captures:
            rig = directory / "rig.toml"
            rig.write_text(RIG.format(port=options.port, file=capture.resolve(), sub_rays=options.sub_rays, loops=0))
            ratio = offline(rig, directory, options.seconds)
            figures = {"capture": capture.name, "offline_x_real_time": round(ratio, 2), **live(rig, directory, options.port, options.seconds)}
            found.append(figures)
            print(figures, flush=True)
    if options.json:
        options.json.write_text(json.dumps({"machine": describe_machine(), "captures": found}, indent=1))


if __name__ == "__main__":
    main()
