"""The whole daemon on the demo scene: start-up, lateness, pose-to-wire latency and render time, idle and under loads.

    python bench/bench_daemon.py [--seconds 10] [--rounds 3] [--json FILE]

Lateness and latency are the sending loop's own figures (time the kernel had taken the datagram minus its deadline, or minus the moment its poses were read);
``bench_timing.py`` checks that kind of figure against a receiver's kernel stamps. Loads are shuffled inside each round. Packets go to loopback and no listener is needed.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import signal
import socket
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
from hilsim.streaming.render_state import RenderCounter
from hilsim.transmit.statistics import Counter, quantile_ns

DEMO = profiles_directory() / "rigs" / "demo.toml"


def machine():
    """What this runs on."""
    info = Path("/proc/cpuinfo").read_text()
    model = next((line.split(":")[1].strip() for line in info.split("\n") if line.startswith("model name")), "unknown CPU")
    return f"{model}, {os.cpu_count()} cores, Linux {os.uname().release}, Python {sys.version.split()[0]}, load average {os.getloadavg()[0]:.2f}"


def _burn(stop):
    while not stop.is_set():
        sum(range(20_000))


@contextlib.contextmanager
def cores_busy():
    """Both (all) cores loaded from outside, by bounded processes."""
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    burners = [context.Process(target=_burn, args=(stop,), daemon=True) for _ in range(os.cpu_count() or 1)]
    for burner in burners:
        burner.start()
    time.sleep(1.0)
    try:
        yield
    finally:
        stop.set()
        for burner in burners:
            burner.join(5)
            if burner.is_alive():
                burner.kill()


@contextlib.contextmanager
def interpreter_held():
    """A Python thread in this very process that never gives the interpreter up of its own accord."""
    stop = threading.Event()

    def hog():
        x = 0
        while not stop.is_set():
            x += 1

    thread = threading.Thread(target=hog, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextlib.contextmanager
def rendering_saturated(running):
    """Every core renders more of the same scene in this process, without the interpreter."""
    stop = threading.Event()
    lidar = next(iter(running.streams.values())).lidar

    def render():
        first = 0
        while not stop.is_set():
            lidar.data_packets(first, 20)
            first += 20

    threads = [threading.Thread(target=render, daemon=True) for _ in range(os.cpu_count() or 1)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def measure(load, seconds, scheduling):
    """One run of the demo rig in this process."""
    rig = load_rig(DEMO)
    object.__setattr__(rig.spec.transmit, "scheduling", scheduling)
    running = RunningRig(rig=rig)
    running.build()
    running.open()
    try:
        around = {"idle": contextlib.nullcontext, "python thread holds the GIL": interpreter_held, "all cores busy": cores_busy}.get(load)
        with around() if around else rendering_saturated(running):
            before = time.process_time()
            running.start()
            time.sleep(seconds)
            cpu_ratio = (time.process_time() - before) / seconds
            return figures(running, cpu_ratio)
    finally:
        running.stop()


def figures(running, cpu_ratio):
    """Histograms and counters of the data flow."""
    streaming = next(iter(running.streams.values()))
    statistics = running.transmitter.statistics
    row = streaming.rows[0]
    counters = statistics.counters[row]
    return {
        "lateness": statistics.lateness[row].copy(),
        "pose": statistics.pose_latency[row].copy(),
        "render": streaming.render_thread.state.render.copy(),
        "packets": int(counters[Counter.PACKETS]),
        "max_ns": int(counters[Counter.LATENESS_MAX_NS]),
        "dropped": int(counters[Counter.DROPPED]) + int(streaming.render_thread.state.counters[RenderCounter.SKIPPED]),
        "early": int(counters[Counter.EARLY]),
        "cpu_ratio": cpu_ratio,
        "mode": running.reading().scheduling.get("transmit", ""),
    }


def start_up(rounds):
    """Seconds from the command to the first packet: warm, then with an empty kernel cache."""

    def first_packet(environment, stop_s=None):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
            receiver.bind(("127.0.0.1", 2368))
            receiver.settimeout(120)
            started = time.monotonic()
            process = subprocess.Popen(
                [sys.executable, "-m", "hilsim", "run", str(DEMO), *(["--duration-s", "0.2"] if stop_s is None else [])],
                env=os.environ | environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            receiver.recv(2000)
            took_s = time.monotonic() - started
            if stop_s is not None:
                time.sleep(0.5)
                told = time.monotonic()
                process.send_signal(signal.SIGTERM)
                process.wait(30)
                stop_s.append(time.monotonic() - told)
            process.wait(30)
            return took_s

    first_packet({})
    stops = []
    warm = sorted(first_packet({}, stops) for _ in range(max(rounds, 3)))
    with tempfile.TemporaryDirectory() as empty:
        cold = first_packet({"XDG_CACHE_HOME": empty})
    return {"warm_s": warm, "cold_s": cold, "stop_s": stops}


def microseconds(histogram, quantile):
    """A quantile for the table."""
    value = quantile_ns(histogram, quantile)
    return "-" if value is None else f"{value / 1000:.0f}"


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(machine())
    started = start_up(options.rounds)
    print(
        f"first packet: warm {np.median(started['warm_s']):.2f} s (worst {started['warm_s'][-1]:.2f}), empty kernel cache {started['cold_s']:.1f} s"
    )
    print(f"SIGTERM to exit: {max(started['stop_s']):.2f} s at worst\n")
    loads = ["idle", "python thread holds the GIL", "rendering saturated", "all cores busy"]
    variants = [(load, scheduling) for load in loads for scheduling in ("auto", "slice")]
    found = {variant: [] for variant in variants}
    for _ in range(options.rounds):
        random.shuffle(variants)
        for variant in variants:
            found[variant].append(measure(variant[0], options.seconds, variant[1]))
    print(f"demo scene, one VLP-16, {options.rounds} x {options.seconds:g} s each; all times in us")
    print(
        f"{'load':30} {'sched':6} {'late p50':>8} {'p99':>7} {'p99.9':>7} {'max':>8} {'pose p50':>9} {'p99':>7} {'render p50':>11} {'p99':>7} {'lost':>5} {'CPU %':>6}"
    )
    summary = []
    for (load, _), runs in sorted(found.items(), key=lambda item: (loads.index(item[0][0]), item[0][1])):
        lateness, pose, render = (sum(run[name] for run in runs) for name in ("lateness", "pose", "render"))
        line = {
            "load": load,
            "scheduling": runs[0]["mode"],
            "lateness_us": [microseconds(lateness, q) for q in (0.5, 0.99, 0.999)],
            "lateness_max_us": max(run["max_ns"] for run in runs) / 1000,
            "pose_to_wire_us": [microseconds(pose, q) for q in (0.5, 0.99)],
            "render_us": [microseconds(render, q) for q in (0.5, 0.99)],
            "packets": sum(run["packets"] for run in runs),
            "dropped": sum(run["dropped"] for run in runs),
            "cpu_percent": 100 * float(np.mean([run["cpu_ratio"] for run in runs])),
        }
        summary.append(line)
        print(
            f"{load:30} {line['scheduling']:6} {line['lateness_us'][0]:>8} {line['lateness_us'][1]:>7} {line['lateness_us'][2]:>7} {line['lateness_max_us']:8.0f}"
            f" {line['pose_to_wire_us'][0]:>9} {line['pose_to_wire_us'][1]:>7} {line['render_us'][0]:>11} {line['render_us'][1]:>7} {line['dropped']:5} {line['cpu_percent']:6.1f}"
        )
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(), "start": started, "runs": summary}, indent=2))


if __name__ == "__main__":
    main()
