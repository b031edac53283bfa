"""Eight Velodynes of five models at once: the shipped rig ``fleet`` as a real daemon, and a receiver that counts every packet.

    python bench/bench_fleet.py [--seconds 600] [--rig RIG] [--json FILE]

The receiver is a process of its own with a socket for each stream. A sensor's data packets between the first and the last one received are numbered by their
time stamps, so "missing" is exact without the daemon's word. Lateness, missed deadlines and the time to render, by the clock, are the daemon's metrics.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import select
import socket
import struct
import time
from pathlib import Path

import numpy as np
from bench_daemon import machine

from hilsim.api.daemon import Daemon
from hilsim.assembly.build import build_lidar, build_scenery
from hilsim.config.places import rig_path
from hilsim.config.rig import load_rig
from hilsim.emulator.schedule import packet_device_ns

SO_RCVBUFFORCE = 33
BUFFER_BYTES = 32 << 20
HOUR_US = 3_600_000_000
STAMP_AT = 1200
SETTLE_S = 3.0
NICENESS = 5


def receiving_socket():
    """A bound socket that holds seconds of a stream."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    except PermissionError:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    made.bind(("127.0.0.1", 0))
    made.settimeout(0.0)
    return made


def receive(sockets, ended, results):
    """Count packets until ``ended`` is set and nothing waits: for each socket packets, first and last stamp (us, beyond the hour), and steps back."""
    os.nice(NICENESS)
    poll = select.epoll()
    for each in sockets:
        poll.register(each, select.EPOLLIN)
    by_number = {each.fileno(): row for row, each in enumerate(sockets)}
    found = [[0, 0, 0, 0] for _ in sockets]
    while True:
        is_last = ended.is_set()
        events = poll.poll(0.05)
        for number, _ in events:
            row = by_number[number]
            with contextlib.suppress(BlockingIOError):
                while True:
                    note(found[row], sockets[row].recv(2000))
        if is_last and not events:
            break
        time.sleep(0.01)  # dozens of packets at a time: the receiver takes little from the daemon
    results.put(found)


def note(counts, payload):
    """Enter a packet in ``[packets, first stamp, last stamp, steps back]``."""
    counts[0] += 1
    if len(payload) != STAMP_AT + 6:
        return
    (stamp_us,) = struct.unpack_from("<I", payload, STAMP_AT)
    if counts[0] == 1:
        counts[1] = counts[2] = stamp_us
        return
    step_us = (stamp_us - counts[2]) % HOUR_US
    if step_us > HOUR_US // 2:
        counts[3] += 1
        return
    counts[2] += step_us


def numbered(plan, stamp_us):
    """Number of the data packet whose first firing is nearest to a stamp of a free clock."""
    low, high = 0, 1 << 32
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if packet_device_ns(plan, middle) <= stamp_us * 1000 + 1000 else (low, middle)
    return low


def quantile_us(metrics, sensor, quantile):
    """Lateness of a sensor's data packets, the upper bound of its bucket (us)."""
    buckets = []
    for name, value in metrics.items():
        if name.startswith('hilsim_lateness_seconds_bucket{flow="data"') and f'sensor="{sensor}"' in name:
            buckets.append((float(name.partition('le="')[2].partition('"')[0]), value))
    buckets.sort()
    total = buckets[-1][1]
    return next(bound for bound, count in buckets if count >= quantile * total) * 1e6


def processor_s(pid):
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(path, seconds):
    """Run a rig and count; returns a row for each sensor, and figures of the whole daemon."""
    rig = load_rig(path)
    sockets = [receiving_socket() for _ in range(2 * len(rig.sensors))]
    settings = {}
    for number, name in enumerate(rig.sensors):
        settings[f"sensor.{name}.network.data_port"] = sockets[2 * number].getsockname()[1]
        settings[f"sensor.{name}.network.position_port"] = sockets[2 * number + 1].getsockname()[1]
        if rig.spec.sensor[number].web is not None:
            settings[f"sensor.{name}.web.port"] = 0
    context = multiprocessing.get_context("fork")
    ended, results = context.Event(), context.Queue()
    receiver = context.Process(target=receive, args=(sockets, ended, results), daemon=True)
    receiver.start()
    with Daemon(path, settings=settings) as daemon:
        began_s, used_s = time.monotonic(), processor_s(daemon.pid)
        time.sleep(SETTLE_S + seconds)
        took_s, used_s = time.monotonic() - began_s, processor_s(daemon.pid) - used_s
        metrics = daemon.metrics()
    ended.set()
    found = results.get(timeout=60)
    receiver.join(60)
    scenery = build_scenery(rig)
    rows = []
    for number, name in enumerate(rig.sensors):
        (packets, first_us, last_us, back), positions = found[2 * number], found[2 * number + 1][0]
        plan = build_lidar(rig, number, scenery, utc_epoch_ns=0, frames=False).plan
        expected = numbered(plan, last_us) - numbered(plan, first_us) + 1
        late, dropped, skipped = (
            int(sum(value for key, value in metrics.items() if key.startswith(f"hilsim_{kind}_packets_total") and f'sensor="{name}"' in key))
            for kind in ("late", "dropped", "render_skipped")
        )
        rows.append(
            {
                "sensor": name,
                "model": rig.lidars[number].spec.model,
                "packets": packets,
                "missing": expected - packets,
                "steps_back": back,
                "positions": positions,
                "late": late,
                "dropped": dropped,
                "skipped": skipped,
                "p50_us": quantile_us(metrics, name, 0.5),
                "p99_us": quantile_us(metrics, name, 0.99),
                "max_us": max(
                    value for key, value in metrics.items() if key.startswith('hilsim_lateness_max_seconds{flow="data"') and f'"{name}"' in key
                )
                * 1e6,
                "render_share": metrics.total("hilsim_render_seconds_sum", sensor=name) / took_s,
            }
        )
    return rows, {"seconds": took_s, "cores": used_s / took_s, "render_share": float(np.sum([row["render_share"] for row in rows]))}


def main():
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rig", default="fleet")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    print(machine(), flush=True)
    rows, whole = measure(rig_path(arguments.rig), arguments.seconds)
    print(
        f"{whole['seconds']:.1f} s; the daemon took {whole['cores']:.2f} cores, rendering {whole['render_share']:.2f} s a second by the clock; after it: {machine()}"
    )
    print("| sensor | model | data packets | missing | out of order | position packets | late | dropped | p50 | p99 | worst | rendering, s/s |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['sensor']} | {row['model']} | {row['packets']:,} | {row['missing']} | {row['steps_back']} | {row['positions']:,} | {row['late']} |"
            f" {row['dropped'] + row['skipped']} | {row['p50_us']:.0f} us | {row['p99_us']:.0f} us | {row['max_us']:.0f} us | {row['render_share']:.2f} |"
        )
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"machine": machine(), **whole, "sensors": rows}, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
