"""When packets really leave: hilsim beside a C program and asyncio, in one run, with kernel stamps taken at the receiver.

    python bench/bench_timing.py [--seconds 10] [--rounds 3] [--json FILE]

Each sender is a process of its own and sends a VLP-16's packets (1206 bytes each 1327.104 us) over loopback against absolute deadlines. Variants are
shuffled within each load, loads within each round. Lateness is the kernel's stamp minus the deadline, nothing is dropped for being late.
``cpu`` is the CPU time of the sending thread (of the process, in C) as a share of one core. ``fleet`` is 50 sensors sent by one thread.
"""

import argparse
import contextlib
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numba
import numpy as np

HERE = Path(__file__).resolve().parent
PERIOD_NS = 1_327_104
SENDER_GRACE_S = 120  # compiling on a machine that is kept busy
FIFO_PRIORITY = 50
HILSIM = ("hilsim auto", "hilsim fifo, no spin", "hilsim slice", "hilsim slice unprivileged", "hilsim plain")
IN_PROCESS_LOADS = ("gil", "render")
"""Loads that live in the sender's process, which the C program has no part in."""

VARIANTS = (*HILSIM, "C fifo", "C plain", "asyncio-dgram")
LOADS = ("idle", "gil", "cpu", "render")
BURN = "import time\nend = time.monotonic() + float({seconds})\nx = 1.0\nwhile time.monotonic() < end:\n    for _ in range(10000): x = x * 1.0000001 + 1e-9\n"


def describe_machine():
    """What a reader must know to compare figures."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    model = next((line.split(":", 1)[1].strip() for line in info.splitlines() if line.startswith("model name")), "unknown CPU")
    config = ""
    with contextlib.suppress(OSError):
        config = gzip.decompress(Path("/proc/config.gz").read_bytes()).decode()
    hz = next((line.partition("=")[2] for line in config.splitlines() if line.startswith("CONFIG_HZ=")), "unknown")
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": os.uname().release,
        "hz": hz,
        "python": sys.version.split()[0],
        "numba": numba.__version__,
        "numpy": np.__version__,
        "load_average": round(os.getloadavg()[0], 2),
        "uid": os.getuid(),
    }


def compile_c(directory):
    """The C sender, or None without a compiler."""
    program = Path(directory) / "paced_sender"
    try:
        subprocess.run(["gcc", "-O2", "-o", program, HERE / "paced_sender.c"], check=True)
    except FileNotFoundError:
        print("no gcc: the C rows are left out", file=sys.stderr)
        return None
    return program


@contextlib.contextmanager
def burners(seconds):
    """As many busy processes as there are cores; each ends by itself even if this program is killed."""
    processes = [subprocess.Popen([sys.executable, "-c", BURN.format(seconds=seconds)]) for _ in range(os.cpu_count())]
    try:
        time.sleep(0.3)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def receiver(path):
    """A receiving process; yields its port; on leaving, ``path`` holds what came."""
    process = subprocess.Popen([sys.executable, HERE / "timing_receiver.py", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield int(process.stdout.readline())
        time.sleep(0.05)
        process.stdin.close()
        process.wait(60)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()


def measure(variant, load, seconds, flows, program, directory):
    """Run one sender under one load; returns its report and what was received, or None where it cannot run."""
    count = round(seconds * 1e9 / PERIOD_NS)
    path = Path(directory) / "received.npy"
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(receiver(path))
        if load == "cpu":
            stack.enter_context(burners(4 * seconds + SENDER_GRACE_S))
        if variant.startswith("C "):
            command = [program, str(port), str(count), str(PERIOD_NS), str(FIFO_PRIORITY if variant == "C fifo" else 0)]
        else:
            command = [sys.executable, HERE / "timing_sender.py", "--variant", variant, "--load", load, "--port", str(port)]
            command += ["--count", str(count), "--flows", str(flows)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=4 * seconds + SENDER_GRACE_S, check=False)
    if done.returncode != 0:
        print(f"{variant} under {load}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout), np.load(path)


def summarise(samples, seconds):
    """Figures of one variant under one load, pooled over its rounds."""
    lateness_us = np.concatenate([(table[:, 3] - table[:, 2]) / 1000 for _, table in samples])
    interval_us, drift_ppm = [], []
    for _, table in samples:
        for flow in np.unique(table[:, 0]):
            rows = table[table[:, 0] == flow]
            interval_us.append(np.diff(rows[:, 3] - rows[:, 2]) / 1000)
            planned = (rows[:, 2] - rows[0, 2]).astype(float)
            drift_ppm.append(np.polyfit(planned, (rows[:, 3] - rows[:, 2]).astype(float), 1)[0] * 1e6)
    p50, p99, p999 = np.quantile(lateness_us, [0.5, 0.99, 0.999])
    return {
        "n": int(lateness_us.size),
        "p50_us": round(float(p50), 1),
        "p99_us": round(float(p99), 1),
        "p99.9_us": round(float(p999), 1),
        "max_us": round(float(lateness_us.max()), 1),
        "min_us": round(float(lateness_us.min()), 1),
        "interval_sd_us": round(float(np.concatenate(interval_us).std()), 1),
        "drift_ppm": round(float(max(drift_ppm, key=abs)), 2),
        "unsent": sum(said["planned"] - said["sent"] for said, _ in samples),
        "lost": sum(said["sent"] - len(table) for said, table in samples),
        "cpu_percent": round(100 * sum(said["cpu_s"] for said, _ in samples) / (seconds * len(samples)), 1),
        "scheduling": samples[0][0]["scheduling"],
        "own_p99_us": [round(said["own_p99_us"], 1) for said, _ in samples if "own_p99_us" in said],
        "rounds_p99_us": [round(float(np.quantile((table[:, 3] - table[:, 2]) / 1000, 0.99)), 1) for _, table in samples],
    }


def print_table(rows):
    """One line a load and variant."""
    columns = ("p50_us", "p99_us", "p99.9_us", "max_us", "interval_sd_us", "drift_ppm", "unsent", "lost", "cpu_percent")
    print(f"{'load':7}{'variant':22}{'sched':7}" + "".join(f"{name:>15}" for name in columns) + "   p99 of each round")
    for (load, variant), row in rows.items():
        figures = "".join(f"{row[name]:>15}" for name in columns)
        print(f"{load:7}{variant:22}{row['scheduling']:7}{figures}   {' '.join(map(str, row['rounds_p99_us']))}")


def plan_round(arguments, has_c, shuffle):
    """(load, variant, flows) in the order of one round."""
    plan = []
    for load in shuffle.sample(arguments.loads, len(arguments.loads)):
        variants = [each for each in arguments.variants if not each.startswith("C ") or (has_c and load not in IN_PROCESS_LOADS)]
        plan += [(load, variant, 1) for variant in shuffle.sample(variants, len(variants))]
    if arguments.fleet:
        plan += [("fleet", variant, arguments.fleet) for variant in ("hilsim auto", "hilsim slice")]
    return plan


def main():
    """Run every variant under every load and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loads", nargs="+", choices=LOADS, default=list(LOADS))
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--fleet", type=int, default=50, help="sensors of the fleet row; 0 leaves it out")
    parser.add_argument("--seed", type=int, default=1, help="of the order of runs")
    parser.add_argument("--json", type=Path, help="write everything here")
    arguments = parser.parse_args()
    machine = describe_machine()
    print(" · ".join(f"{name} {value}" for name, value in machine.items()))
    samples = {}
    shuffle = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as directory:
        program = compile_c(directory)
        for number in range(arguments.rounds):
            for load, variant, flows in plan_round(arguments, program is not None, shuffle):
                print(f"round {number + 1}/{arguments.rounds}: {load}, {variant}", file=sys.stderr)
                sample = measure(variant, load, arguments.seconds, flows, program, directory)
                if sample is not None and len(sample[1]) > 1:
                    samples.setdefault((load, variant), []).append(sample)
    order = [(load, variant) for load in (*LOADS, "fleet") for variant in VARIANTS]
    rows = {key: summarise(samples[key], arguments.seconds) for key in order if key in samples}
    print_table(rows)
    if arguments.json:
        table = [{"load": load, "variant": variant, **row} for (load, variant), row in rows.items()]
        arguments.json.write_text(json.dumps({"machine": machine, "seconds": arguments.seconds, "rounds": arguments.rounds, "rows": table}, indent=2))


if __name__ == "__main__":
    main()
