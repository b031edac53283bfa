"""Timed changes beside lidars and a replay: what they cost the packet path, and how soon packets show them.

    python bench/bench_changes.py [--seconds 60] [--rate 50] [--busy] [--json FILE]

One daemon sends three VLP-16s (one, seven and one rays a beam) in the demo street and replays a capture. Stretches with changes of every kind at ``--rate``
a second and stretches without take turns, ten seconds each. Reported for both: how late data packets left (the daemon's own histogram), packets late,
dropped or not rendered; the daemon's memory at the beginning and the end; the time from a request to its beginning in rig time, and to the packet on the wire.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_gazebo import cost_of, late_p99_us, metrics
from bench_timing import burners, describe_machine

import hilsim

START_S = 180.0
STRETCH_S = 10.0
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
    path.write_text(head + "".join(sensors) + replay + '[metrics]\nport = 0\n[control]\nsocket = "control"\n', encoding="utf-8")
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


def stretch(control, address, chance, rate_hz):
    """Ten seconds, with changes or without; counters before and after, and how long each change took (s)."""
    before, begun_s = metrics(address), time.monotonic()
    waits_s, ahead_s, number = [], [], 0
    while (now_s := time.monotonic()) - begun_s < STRETCH_S:
        if rate_hz and number < rate_hz * (now_s - begun_s):
            asked_s, asked_rig_s = time.monotonic(), control.state()["rig_s"] if number % 25 == 0 else None
            times = control.change(**change(chance, number))
            waits_s.append(time.monotonic() - asked_s)
            if asked_rig_s is not None:
                ahead_s.append(max(times.sensors.values(), default=times.at_s) - asked_rig_s)
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
            for crate in range(5):
                control.change("add", box={"name": f"crate{crate}", "size_m": [1.0, 1.0, 2.0], "position_m": [5.0 + crate, -22.0, 1.0]})
            time.sleep(2.0)
            memory = [cost_of(daemon.pid)[0]]
            waits_s, ahead_s, changes = [], [], 0
            for _ in range(max(round(arguments.seconds / STRETCH_S / 2), 1)):
                for kind, rate_hz in (("quiet", 0.0), ("changing", arguments.rate)):
                    before, after, waits, ahead, count = stretch(control, address, chance, rate_hz)
                    lost = {name: grown(before, after, name) for name in COUNTERS}
                    rows[kind].append({"p99_us": late_p99_us(before, after), "sent": grown(before, after, "hilsim_sent_packets_total"), **lost})
                    waits_s, ahead_s, changes = waits_s + waits, ahead_s + ahead, changes + count
            memory.append(cost_of(daemon.pid)[0])
        finally:
            daemon.terminate()
            daemon.wait()
    result = {
        "machine": describe_machine(),
        "busy": arguments.busy,
        "changes": changes,
        "request_ms": {"median": 1e3 * statistics.median(waits_s), "p99": 1e3 * sorted(waits_s)[int(0.99 * len(waits_s))]},
        "ahead_ms": {"median": 1e3 * statistics.median(ahead_s), "most": 1e3 * max(ahead_s)},
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
    print(f"{changes} changes: answered in {result['request_ms']['median']:.1f} ms (p99 {result['request_ms']['p99']:.1f})")
    print(
        f"begin {result['ahead_ms']['median']:.1f} ms of rig time after they were asked for (at most {result['ahead_ms']['most']:.1f}); memory {result['memory_mb']} MB"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
