"""Sensors on a machine that others use, and that stands still: what is sent, how late, and what others are left.

    python bench/bench_overload.py [--seconds 8] [--settle 4] [--cases 1x7 6x1 8x1] [--loads idle busy standstill both] [--backend cpu] [--json FILE]

A case is so many VLP-16s of so many rays a beam in the demo's street. *busy*: two ordinary processes that never rest; what they got is a share of a core, the least of both.
*standstill*: on every core at once a process of SCHED_FIFO 99 works for 1 to 12 ms five times a second, as a host does that does not run its virtual machine. Figures are
the sending loop's own and are taken after the daemon has settled; ``expected`` follows from the sensors' rate. Packets go to loopback and no listener is needed.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from hilsim.config.profiles import profiles_directory
from hilsim.config.rig import load_rig
from hilsim.daemon.running_rig import RunningRig
from hilsim.transmit.statistics import Counter, quantile_ns

DEMO = profiles_directory() / "rigs" / "demo.toml"
LOAD = Path(__file__).with_name("overload_load.py")
PACE_INTERVAL_S = 0.5


def rig_text(sensors, rays, backend):
    """The demo's street with other sensors."""
    scene = DEMO.read_text().split("[[sensor]]")[0]
    parts = [
        f'[[sensor]]\nname = "s{n}"\nsub_rays = {rays}\nnetwork.source = "127.0.1.{201 + n}"\nmount_position_m = [0.0, 0.0, {2.0 + 0.1 * n}]\n'
        for n in range(sensors)
    ]
    return scene + "\n".join(parts) + f'\n[metrics]\nenabled = false\n[render]\nbackend = "{backend}"\n'


@contextlib.contextmanager
def beside(load, seconds):
    """Run other processes for so long; yields a list of their reports at the end."""
    commands = []
    if load in ("busy", "both"):
        commands += [["busy", str(seconds)]] * 2
    if load in ("standstill", "both"):
        commands += [["standstill", str(seconds), str(cpu), "1"] for cpu in sorted(os.sched_getaffinity(0))]
    running = [(command[0], subprocess.Popen([sys.executable, str(LOAD), *command], stdout=subprocess.PIPE, text=True)) for command in commands]
    said = []
    try:
        yield said
    finally:
        said.extend((kind, json.loads(process.communicate(timeout=seconds + 60)[0])) for kind, process in running)


def measure(directory, case, load, *, backend, seconds, settle):
    """One row."""
    sensors, rays = map(int, case.split("x"))
    path = directory / "rig.toml"
    path.write_text(rig_text(sensors, rays, backend))
    said = []
    rig = load_rig(path)
    try:
        running = RunningRig(rig=rig, say=lambda event, keys: said.append((event, dict(keys))))
    except TypeError:  # a version from before pacing
        running = RunningRig(rig=rig)
    running.build()
    running.open()
    over = threading.Event()

    def pace():
        while not over.wait(PACE_INTERVAL_S):
            running.pace()

    pacing = threading.Thread(target=pace if hasattr(running, "pace") else over.wait)
    try:
        running.start()
        pacing.start()
        with beside(load, settle + seconds) as others:
            time.sleep(settle)
            first = snapshot(running)
            cpu_s, begun_s = time.process_time(), time.monotonic()
            time.sleep(seconds)
            last = snapshot(running)
            cpu_ratio = (time.process_time() - cpu_s) / (time.monotonic() - begun_s)
        streams = running.streams.values()
        row = {
            "case": case,
            "load": load,
            "expected": round(sum(s.lidar.setting.packet_rate_hz for s in streams) * (last["at_s"] - first["at_s"])),
            "sent": last["sent"] - first["sent"],
            "late_sent": last["late"] - first["late"],
            "p50_us": (quantile_ns(last["lateness"] - first["lateness"], 0.5) or 0) / 1e3,
            "p99_us": (quantile_ns(last["lateness"] - first["lateness"], 0.99) or 0) / 1e3,
            "cpu": cpu_ratio,
            "rays": [s.lidar.setting.sub_rays for s in streams],
            "lead_ms": max(s.render_thread.lead_ns for s in streams) / 1e6,
            "scheduling": sorted({s.render_thread.scheduling_mode for s in streams}),
            "events": [event for event, _ in said],
        }
    finally:
        over.set()
        if pacing.ident is not None:
            pacing.join()
        running.stop()
    shares = [entry["share"] for kind, entry in others if kind == "busy"]
    row["busy_share"] = min(shares, default=None)
    row["busy_longest_ms"] = max((entry["longest_ms"] for kind, entry in others if kind == "busy"), default=None)
    return row


def snapshot(running):
    """What was counted until now, of data flows."""
    statistics = running.transmitter.statistics
    rows = [streaming.rows[0] for streaming in running.streams.values()]
    return {
        "at_s": time.monotonic(),
        "sent": int(statistics.counters[rows, Counter.PACKETS].sum()),
        "late": int(statistics.counters[rows, Counter.LATE].sum()),
        "lateness": np.array(statistics.lateness[rows].sum(axis=0)),
    }


def shown(row):
    """A line of a Markdown table."""
    busy = "-" if row["busy_share"] is None else f"{row['busy_share']:.0%}, {row['busy_longest_ms']:.0f}"
    rays = "/".join(map(str, sorted(set(row["rays"]))))
    ratio = row["sent"] / row["expected"]
    return (
        f"| {row['case']} | {row['load']} | {ratio:.2%} | {row['p50_us']:,.0f} | {row['p99_us']:,.0f} | {row['cpu']:.0%} | {rays} | {row['lead_ms']:g} "
        f"| {', '.join(row['scheduling'])} | {busy} |"
    )


def main():
    """Run the rows that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--settle", type=float, default=4.0)
    parser.add_argument("--cases", nargs="+", default=["1x7", "6x1", "8x1"])
    parser.add_argument("--loads", nargs="+", default=["idle", "busy", "standstill", "both"])
    parser.add_argument("--backend", choices=["auto", "cpu", "cuda"], default="cpu")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before\n")
    print(
        "| sensors x rays | beside | sent | p50, us | p99, us | CPU | rays now | lead, ms | scheduling | busy processes: least share, longest stretch without, ms |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for case in options.cases:
            for load in options.loads:
                rows.append(measure(Path(directory), case, load, backend=options.backend, seconds=options.seconds, settle=options.settle))
                print(shown(rows[-1]), flush=True)
    print(f"\nload average {os.getloadavg()[0]:.1f} after")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
