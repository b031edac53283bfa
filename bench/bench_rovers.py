"""Rovers beside a lidar: how exact their cycles are, by the kernel's stamps at a receiver with the default buffer.

    python bench/bench_rovers.py [--seconds 60] [--rovers 5] [--points 1000] [--busy] [--json FILE]

Five rovers of 1,000 points and the demo's lidar by one daemon on the loopback interface. Reported for each rover: its rate, how far the intervals between its poses are from a
period, what was lost, and in how many cycles packets came in another order than pose, chunks, telemetry; then how long a command takes to show in the telemetry. The aim is
10.000 Hz within 0.01 % and 0.3 ms at the 99th percentile.
"""

import argparse
import contextlib
import json
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_timing import burners, describe_machine

SO_TIMESTAMPNS = 35
BASES = {"pose": 9000, "lidar": 10_000, "telemetry": 11_000}
KINDS = tuple(BASES)
AIM_RATE, AIM_P99_US = 1e-4, 300.0
START_S = 120.0


def write_rig(directory, rovers, points):
    """A rig of rovers and the demo's lidar; returns its path."""
    rng = np.random.default_rng(1)
    for number in range(1, rovers + 1):
        with (directory / f"rover{number}.dat").open("w", encoding="ascii") as file:
            for _ in range(50):
                cloud = np.round(rng.uniform(-40, 40, (points, 3)), 3)
                file.write("0,0,0,0,0,0; " + "; ".join(",".join(map(str, row)) for row in cloud) + "\n")
    demo = (Path(__file__).parent.parent / "profiles" / "rigs" / "demo.toml").read_text(encoding="utf-8")
    tables = "".join(f'\n[[rover]]\nnumber = {number}\nfile = "rover{number}.dat"\n' for number in range(1, rovers + 1))
    path = directory / "rovers.toml"
    path.write_text(demo + tables, encoding="utf-8")
    return path


class Receiver:
    """Every packet of every rover, with the kernel's stamp."""

    def __init__(self, rovers):
        self.selector = selectors.DefaultSelector()
        self.packets = {(number, kind): [] for number in range(1, rovers + 1) for kind in KINDS}
        for number, kind in self.packets:
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            made.bind(("127.0.0.1", BASES[kind] + number))
            made.setblocking(False)  # noqa: FBT003 - its only argument
            self.selector.register(made, selectors.EVENT_READ, (number, kind))

    def read(self, until_s, answered=lambda _number, _buttons: None):
        """Take packets until CLOCK_MONOTONIC ``until_s``."""
        while (left_s := until_s - time.monotonic()) > 0:
            for key, _ in self.selector.select(min(left_s, 0.1)):
                with contextlib.suppress(BlockingIOError):
                    while True:
                        payload, (control,), _, _ = key.fileobj.recvmsg(2000, 64)
                        seconds, nanoseconds = struct.unpack("qq", control[2])
                        number, kind = key.data
                        head = struct.unpack_from("<dII", payload) if kind == "lidar" else (struct.unpack_from("<d", payload)[0], 0, 0)
                        self.packets[key.data].append((seconds * 10**9 + nanoseconds, *head))
                        if kind == "telemetry":
                            answered(number, payload[8])

    def forget(self):
        """Begin anew."""
        for packets in self.packets.values():
            packets.clear()

    def close(self):
        """Close the sockets."""
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()


def figures_of(receiver, number):
    """What one rover's packets show."""
    pose, lidar, telemetry = (np.array(receiver.packets[number, kind], dtype=object) for kind in KINDS)
    stamps_ns = pose[:, 0].astype(np.int64)
    cycles = np.rint(pose[:, 1].astype(float) * 10).astype(np.int64)
    whole = slice(1, -1)  # what began or ended within is not judged
    span = (cycles - cycles[0]).astype(float)
    slope_s = np.polyfit(span, (stamps_ns - stamps_ns[0]) / 1e9, 1)[0]
    steps = np.diff(stamps_ns) - np.diff(cycles) * 100_000_000
    by_cycle = {cycle: [(stamps, "pose", 0)] for stamps, cycle in zip(stamps_ns[whole], cycles[whole], strict=True)}
    chunks = 0
    for rows, kind in ((lidar, "lidar"), (telemetry, "telemetry")):
        for stamp_ns, time_s, chunk, count in rows:
            found = by_cycle.get(round(time_s * 10))
            if found is not None:
                found.append((stamp_ns, kind, chunk))
                chunks = max(chunks, count)
    wanted = ["pose", *["lidar"] * chunks, "telemetry"]
    orders = [[kind for _, kind, _ in sorted(found, key=lambda each: each[0])] for found in by_cycle.values()]
    return {
        "rover": number,
        "rate_hz": 1.0 / slope_s,
        "p50_us": float(np.percentile(np.abs(steps), 50)) / 1e3,
        "p99_us": float(np.percentile(np.abs(steps), 99)) / 1e3,
        "max_us": float(np.abs(steps).max()) / 1e3,
        "cycles": len(by_cycle),
        "missing_cycles": int((np.diff(cycles) - 1).sum()),
        "incomplete": sum(sorted(order) != sorted(wanted) for order in orders),
        "out_of_order": sum(sorted(order) == sorted(wanted) and order != wanted for order in orders),
    }


def round_trips_ms(receiver, number, commands=30):
    """From a command to the telemetry that shows it."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as commander:
        for command in range(commands):
            shown = []
            buttons = command % 15 + 1
            begin_s = time.monotonic()
            commander.sendto(bytes([buttons]), ("127.0.0.1", 8000 + number))
            while not shown and time.monotonic() < begin_s + 2:
                receiver.read(time.monotonic() + 0.005, lambda who, what: shown.append(1) if (who, what) == (number, buttons) else None)  # noqa: B023 - within this turn
            found.append((time.monotonic() - begin_s) * 1e3)
            time.sleep(0.037 * (command % 3))
    return found


def main():
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rovers", type=int, default=5)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--busy", action="store_true", help="beside as many busy processes as there are cores")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print(", ".join(f"{key} {value}" for key, value in describe_machine().items()))
    receiver = Receiver(given.rovers)
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        rig, ready = write_rig(Path(place), given.rovers, given.points), Path(place) / "ready.json"
        if given.busy:
            stack.enter_context(burners(given.seconds + START_S))
        command = [sys.executable, "-m", "hilsim", "run", str(rig), "--quiet", "--ready-file", str(ready), "--set", "metrics.port=0"]
        daemon = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            until_s = time.monotonic() + START_S
            while not ready.exists():
                if daemon.poll() is not None or time.monotonic() > until_s:
                    sys.exit("the daemon did not start")
                time.sleep(0.05)
            receiver.read(time.monotonic() + 1.0)
            receiver.forget()
            receiver.read(time.monotonic() + given.seconds)
            rovers = [figures_of(receiver, number) for number in range(1, given.rovers + 1)]
            receiver.forget()
            trips_ms = round_trips_ms(receiver, 1)
        finally:
            daemon.terminate()
            daemon.wait(20)
            receiver.close()
    print(f"{'rover':>5} {'rate Hz':>12} {'p50 us':>8} {'p99 us':>8} {'max us':>8} {'cycles':>7} {'missing':>8} {'incomplete':>11} {'order':>6}")
    for each in rovers:
        print(
            f"{each['rover']:>5} {each['rate_hz']:>12.6f} {each['p50_us']:>8.1f} {each['p99_us']:>8.1f} {each['max_us']:>8.1f} {each['cycles']:>7}"
            f" {each['missing_cycles']:>8} {each['incomplete']:>11} {each['out_of_order']:>6}"
        )
    print(f"command to telemetry: p50 {np.percentile(trips_ms, 50):.1f} ms, max {max(trips_ms):.1f} ms")
    is_reached = all(abs(each["rate_hz"] / 10 - 1) <= AIM_RATE and each["p99_us"] <= AIM_P99_US for each in rovers)
    print("aims reached" if is_reached else f"aims not reached: 10 Hz within {AIM_RATE:.2%}, p99 {AIM_P99_US:g} us")
    if given.json:
        given.json.write_text(json.dumps({"rovers": rovers, "command_ms": trips_ms}, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
