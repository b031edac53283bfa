"""How evenly a flight controller gets its sensors: HIL_SENSOR at 250 Hz over a pty, beside a live VLP-16 on the demo street.

    python bench/bench_flight.py [--seconds 600] [--json FILE]

The reader (``flight_reader.py``) is a process of its own under SCHED_FIFO. Its lateness is against the even grid of frames, moved to where it fits best; hilsim's own is from when a frame was due until the port
had taken it. A witness on each CPU, under SCHED_FIFO above all, tells when the machine itself stood still for 2 ms or more; frames due then, or within 5 ms after it, are left out of the row "but for standstills". The round trip is from that write to the reader's answer. A burst is three frames within one period; "close" are two nearer than half a period. The vehicle is parked in the street: its step costs the same.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_daemon import figures, machine, microseconds

from hilsim.config.profiles import profiles_directory
from hilsim.config.rig import load_rig
from hilsim.daemon.running_rig import RunningRig
from hilsim.parts.vehicle.autopilot.loop_context import FlightCount
from hilsim.parts.vehicle.autopilot.send_queue import OutboxCount
from hilsim.parts.vehicle.link import serve_link
from hilsim.parts.vehicle.part import VehiclePart

RATE_HZ = 250
PERIOD_NS = 1_000_000_000 // RATE_HZ
SETTLE_S = 2.0
AFTER_NS = 5_000_000


def write_rig(directory, link):
    """The demo rig on a vehicle."""
    text = (profiles_directory() / "rigs" / "demo.toml").read_text()
    begin, end = text.index("[platform]"), text.index("[[sensor]]")
    vehicle = f'[platform]\nkind = "vehicle"\n[vehicle]\nposition_m = [0.0, 0.0, 0.3]\n[vehicle.controller]\nkind = "serial"\nport = "{link}"\nrate_hz = {RATE_HZ}\n'
    path = directory / "rig.toml"
    path.write_text(text[:begin] + vehicle + text[end:])
    return path


def flying(running):
    """The vehicle of a running rig."""
    return running.part(VehiclePart).vehicle


def thread_cpu_s(native_id):
    """CPU time of a thread of this process."""
    return int(Path(f"/proc/self/task/{native_id}/schedstat").read_text().split()[0]) / 1e9


async def fly(running, seconds):
    """Let the link run; returns CPU ratios of the flying thread and of the process."""
    async with serve_link(flying(running)):
        while flying(running).loop_setup.buffers.outbox.counts[OutboxCount.SAMPLES] == 0:  # noqa: ASYNC110 - a thread without the GIL cannot set an Event
            await asyncio.sleep(0.05)
        await asyncio.sleep(SETTLE_S)
        reset(flying(running).loop_setup.shared)
        native_id = flying(running)._thread.native_id  # noqa: SLF001 - what a bench may know
        began, thread_s, process_s = time.monotonic(), thread_cpu_s(native_id), time.process_time()
        await asyncio.sleep(seconds)
        took_s = time.monotonic() - began
        return (thread_cpu_s(native_id) - thread_s) / took_s, (time.process_time() - process_s) / took_s


def reset(shared):
    """Forget the start."""
    for histogram in (shared.lateness, shared.round_trip, shared.gap):
        histogram[:] = 0


def standing_still(due_ns, witnessed):
    """Whether each time lies in a standstill of some CPU, or just after one."""
    found = np.zeros(len(due_ns), bool)
    for begin_ns, late_ns in witnessed:
        found |= (due_ns >= begin_ns - PERIOD_NS) & (due_ns <= begin_ns + late_ns + AFTER_NS)
    return found


def quantiles_ns(late):
    """For the table."""
    return {name: int(np.quantile(late, share)) for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))}


def seen(noted, witnessed):
    """What the reader saw, in ns and counts."""
    stamps = noted[noted[:, 0] > noted[0, 0] + SETTLE_S * 1e9, 0]
    behind = stamps - np.arange(len(stamps)) * PERIOD_NS
    late = behind - np.minimum.accumulate(behind[::-1])[::-1]  # a frame that was skipped moves the grid from then on
    steps = np.diff(stamps)
    close = steps < PERIOD_NS // 2
    return {
        "frames": len(stamps),
        "lateness_ns": quantiles_ns(late),
        "lateness_but_for_standstills_ns": quantiles_ns(late[~standing_still(stamps - late, witnessed)]),
        "standstills": len(witnessed),
        "longest_standstill_ns": int(witnessed[:, 1].max(initial=0)),
        "longest_gap_ns": int(steps.max()),
        "close": int(close.sum()),
        "close_after_a_gap": int((close[1:] & (steps[:-1] > 3 * PERIOD_NS // 2)).sum()),
        "bursts": int((stamps[2:] - stamps[:-2] < PERIOD_NS).sum()),
    }


def start_reader(*arguments):
    """A process of ``flight_reader.py`` that ends when its input closes."""
    command = [sys.executable, str(Path(__file__).with_name("flight_reader.py")), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def measure(seconds, directory):
    """One run."""
    link, path = directory / "px4", directory / "noted.npy"
    rig = load_rig(write_rig(directory, link))
    reader = start_reader(link, path)
    cpus = sorted(os.sched_getaffinity(0))
    witnesses = [start_reader("--witness", cpu, directory / f"witness-{cpu}.npy") for cpu in cpus]
    running = RunningRig(rig=rig)
    try:
        mode = reader.stdout.readline().strip()
        running.build()
        running.open()
        running.start()
        thread_ratio, process_ratio = asyncio.run(fly(running, seconds))
        shared, outbox = flying(running).loop_setup.shared, flying(running).loop_setup.buffers.outbox
        lidar = figures(running, process_ratio)
        found = {
            "machine": machine(),
            "seconds": seconds,
            "scheduling": {"fly": flying(running).scheduling_mode, "reader": mode},
            "thread_cpu_ratio": thread_ratio,
            "process_cpu_ratio": process_ratio,
            "counts": {name.name.lower(): int(shared.counts[name]) for name in FlightCount}
            | {"replaced": int(outbox.counts[OutboxCount.SAMPLES_REPLACED])},
        }
        table = {"lateness": shared.lateness.copy(), "round trip": shared.round_trip.copy(), "lidar lateness": lidar["lateness"]}
    finally:
        for process in (reader, *witnesses):
            process.stdin.close()
            process.wait(30)
        running.stop()
    witnessed = np.concatenate([np.load(directory / f"witness-{cpu}.npy") for cpu in cpus])
    return found | {"seen": seen(np.load(path), witnessed), "lidar": {name: lidar[name] for name in ("packets", "dropped", "max_ns")}}, table


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    before = os.getloadavg()
    with tempfile.TemporaryDirectory() as directory:
        found, table = measure(options.seconds, Path(directory))
    reader, counts = found["seen"], found["counts"]
    print(f"{found['machine']} (before: {before[0]:.2f})")
    print(f"{options.seconds:.0f} s, {reader['frames']} frames, flying thread {found['scheduling']['fly']}, reader {found['scheduling']['reader']}\n")
    print("| us | p50 | p99 | p99.9 | max |\n|---|---|---|---|---|")
    print("| lateness at the reader | " + " | ".join(f"{value / 1000:.0f}" for value in reader["lateness_ns"].values()) + " |")
    but = reader["lateness_but_for_standstills_ns"].values()
    print("| the same, but for standstills | " + " | ".join(f"{value / 1000:.0f}" for value in but) + " |")
    for name, histogram in table.items():
        print(f"| {name} (hilsim's own) | " + " | ".join(microseconds(histogram, share) for share in (0.5, 0.99, 0.999, 1.0)) + " |")
    print(
        f"\nlongest gap {reader['longest_gap_ns'] / 1e6:.2f} ms, bursts {reader['bursts']}, close {reader['close']} ({reader['close_after_a_gap']} after a gap), "
        f"stalls {counts['stalls']}, skipped {counts['skipped_sensors']}, replaced {counts['replaced']}"
    )
    print(f"the machine stood still {reader['standstills']} times, for {reader['longest_standstill_ns'] / 1e6:.1f} ms at most (all CPUs counted)")
    print(f"CPU: flying thread {100 * found['thread_cpu_ratio']:.1f} % of a core, process {100 * found['process_cpu_ratio']:.1f} %")
    print(f"lidar: {found['lidar']['packets']} packets, {found['lidar']['dropped']} dropped")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
