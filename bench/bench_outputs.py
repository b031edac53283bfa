"""Data sets by one worker and by two, and live outputs with clients that read, never read, and are killed.

    python bench/bench_outputs.py dataset ros2 foxglove slow folders [--seconds N] [--seeds 100] [--judge PYTHON] [--json]

- ``dataset``: 200 recordings (0.2 s of rig time, two variants, 100 seeds) by one worker and by two in turn; processor seconds are those of all processes.
- ``ros2``, ``foxglove``: ``hilsim publish`` follows a daemon with about 30,000 points a scan at 10 Hz, and a client in another process reads for 60 s. The
  publisher reports what it sent and skipped in its whole life; the client's process has a few less if it is found later. A scan is lost if
  fewer came than the span of stamps has periods, from 3 s after the first one on; ``steps`` counts the scans by the distance to the one before, in periods.
- ``slow``: the same publisher for ten minutes with clients of both kinds: one that never reads, one whose process is stopped, and one that is killed each 10 s.
  Then stretches of the daemon's lateness without the publisher and with it take turns.
- ``folders``: what ``hilsim export`` writes is loaded by the devkits of nuScenes and KITTI, which the Python environment of ``--judge`` has.
"""

import argparse
import contextlib
import hashlib
import itertools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from bench_timing import describe_machine
from bench_view_page import _used

import hilsim
from hilsim.show.view.feed.series import quantile

HERE = Path(__file__).resolve().parent
HILSIM = (sys.executable, "-m", "hilsim")
PARTS = ("dataset", "ros2", "foxglove", "slow", "folders")
SECONDS = {"ros2": 60.0, "foxglove": 60.0, "slow": 600.0}
DOMAIN, TOPIC, PERIOD_NS = 88, "/roof/points", 100_000_000
RIG = {"sensor.roof.profile": "vlp32c", "sensor.roof.sub_rays": 1, "sensor.roof.field_of_view_deg": [0, 204]}
"""Settings of the demo that give about 30,000 points a scan."""
SAMPLE_S, STRETCH_S, SETTLE_S = 10.0, 10.0, 3.0


def dataset_specification(seeds):
    """A specification of two recordings a seed."""
    return (
        f'rig = ["demo"]\nseeds = {list(range(1, seeds + 1))}\nduration_s = 0.2\n[[axis]]\nvariant = [{{ name = "clear", set = ["sensor.roof.sub_rays=1"] }}, '
        '{ name = "rain", set = ["sensor.roof.sub_rays=1", "weather.rain_mm_per_h=20"] }]\n'
    )


def digest_of(folder):
    """One digest of all files of a folder."""
    found = hashlib.sha256()
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        found.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return found.hexdigest()


def children_s():
    """Processor seconds of the child processes that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure_dataset(seeds, turns):
    """Wall and processor seconds of the same data set by one worker and by two, in turn."""
    rows, digests = [], set()
    with tempfile.TemporaryDirectory() as name:
        render_dataset(Path(name) / "first", 1, 1)  # compiles
        for turn in range(turns):
            for workers in (1, 2):
                output = Path(name) / f"town-{turn}-{workers}"
                rows.append(render_dataset(output, seeds, workers))
                print(f"  {rows[-1]}", flush=True)
                digests.add(digest_of(output))
                shutil.rmtree(output)
    wall_s, cpu_s = ({workers: sum(row[key] for row in rows if row["workers"] == workers) for workers in (1, 2)} for key in ("wall_s", "cpu_s"))
    return {
        "rows": rows,
        "wall_ratio": round(wall_s[1] / wall_s[2], 2),
        "cpu_ratio": round(2.0 * cpu_s[1] / cpu_s[2], 2),  # the wall ratio on two cores without other work, where a worker fills one core
        "same_bytes": len(digests) == 1,
    }


def render_dataset(output, seeds, workers):
    """Render into a folder, and measure."""
    specification = output.with_suffix(".toml")
    specification.write_text(dataset_specification(seeds))
    load, used_s, begun_s = os.getloadavg()[0], children_s(), time.monotonic()
    command = [*HILSIM, "dataset", str(specification), "-o", str(output), "--workers", str(workers), "--json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {
        "workers": workers,
        "recordings": 2 * seeds,
        "wall_s": round(time.monotonic() - begun_s, 1),
        "cpu_s": round(children_s() - used_s, 1),
        "load_before": round(load, 1),
        "load_after": round(os.getloadavg()[0], 1),
    }


class Client:
    """A process of ``outputs_clients.py``."""

    def __init__(self, kind, place, *, stalls=False):
        command = [sys.executable, str(HERE / "outputs_clients.py"), kind, str(place), TOPIC, *(["--stall"] if stalls else [])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait_for(self, word):
        """Wait for a line."""
        line = self.process.stdout.readline().strip()
        if line != word:
            raise RuntimeError(f"a client must print {word}, got {line!r}")

    def report(self):
        """End its input, and return what it reports."""
        output, _ = self.process.communicate(timeout=60)
        return json.loads(output)

    def kill(self):
        """End the process at once, without a farewell."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Publisher:
    """A process of ``hilsim publish`` that follows a daemon."""

    def __init__(self, daemon, *, ros2=True, foxglove=True):
        command = [*HILSIM, "publish", daemon.control.address]
        command += ["--ros2", "--domain", str(DOMAIN)] if ros2 else []
        command += ["--foxglove", "127.0.0.1:0"] if foxglove else []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip() if foxglove else ""

    def stop(self):
        """Stop it; returns what it reported, and its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            _, errors = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, errors = self.process.communicate()
        found = {}
        for line in errors.splitlines():
            with contextlib.suppress(ValueError):
                found |= json.loads(line)
        if self.process.returncode:
            print(errors[-1500:], file=sys.stderr)
        return {"scans": found.get("scans"), "skipped": found.get("skipped"), "code": self.process.returncode}


def measure_reading(kind, seconds):
    """Scans that the publisher sent and a client received."""
    with hilsim.Daemon("demo", to="127.0.0.1:9", settings=RIG) as daemon, contextlib.ExitStack() as stack:
        early = Client(kind, DOMAIN) if kind == "ros2" else None
        if early is not None:
            early.wait_for("ready")
        publisher = Publisher(daemon, ros2=kind == "ros2", foxglove=kind == "foxglove")
        stack.callback(publisher.process.kill)
        client = early or Client(kind, publisher.url)
        stack.callback(client.process.kill)
        if early is None:
            client.wait_for("ready")
        client.wait_for("first")
        load, (used_s, _), begun_s = os.getloadavg()[0], _used(publisher.process.pid), time.monotonic()
        time.sleep(seconds)
        cpu = (_used(publisher.process.pid)[0] - used_s) / (time.monotonic() - begun_s)
        said = publisher.stop()
        heard = client.report()
    stamps = sorted(heard["stamps_ns"])
    stamps = [stamp for stamp in stamps if stamp > stamps[0] + SETTLE_S * 1e9]  # the first ones are irregular
    steps = [round((later - earlier) / PERIOD_NS) for earlier, later in itertools.pairwise(stamps)]
    return {
        "seconds": seconds,
        "points_a_scan": heard["points"],
        "sent": said["scans"],
        "received": len(heard["stamps_ns"]),
        "settled": len(stamps),
        "lost": sum(steps) + 1 - len(stamps),
        "steps": dict(sorted(Counter(steps).items())),
        "publisher": said,
        "publisher_cpu_ratio": round(cpu, 2),
        "load_before": round(load, 1),
        "load_after": round(os.getloadavg()[0], 1),
    }


def flow_of(daemon):
    """The daemon's figures of the data packets."""
    return daemon.control.state()["sensors"]["roof"]["flows"]["data"]


def lateness(before, after):
    """Packets, quantiles of lateness, and late or dropped packets between two states."""
    grown = [now - then for now, then in zip(after["lateness"]["cumulative"], before["lateness"]["cumulative"], strict=True)]
    bounds_s = after["lateness"]["bounds_s"]
    return {
        "packets": grown[-1],
        "late": after["late_packets"] - before["late_packets"],
        "dropped": after["dropped_packets"] - before["dropped_packets"],
        **{f"p{100 * share:g}_us": round(1e6 * quantile(bounds_s, grown, share)) for share in (0.5, 0.99, 0.999)},
    }


def measure_slow(seconds, turns):
    """Memory of a publisher with bad clients, and the daemon's lateness without a publisher and with it."""
    with hilsim.Daemon("demo", to="127.0.0.1:9", settings=RIG) as daemon:
        load = os.getloadavg()[0]
        memory = watch_memory(daemon, seconds)
        stretches = {"without": [], "with the publisher": []}
        for _ in range(turns):
            before = flow_of(daemon)
            time.sleep(STRETCH_S)
            stretches["without"].append(lateness(before, flow_of(daemon)))
            publisher = Publisher(daemon)
            clients = [Client("ros2", DOMAIN), Client("foxglove", publisher.url)]
            try:
                for client in clients:
                    client.wait_for("ready")
                    client.wait_for("first")
                time.sleep(SETTLE_S)
                before = flow_of(daemon)
                time.sleep(STRETCH_S)
                stretches["with the publisher"].append(lateness(before, flow_of(daemon)))
            finally:
                for client in clients:
                    client.kill()
                publisher.stop()
    return {**memory, "lateness": stretches, "load_before": round(load, 1), "load_after": round(os.getloadavg()[0], 1)}


def watch_memory(daemon, seconds):
    """Resident megabytes of a publisher each 10 s, with clients that never read, are stopped, and are killed."""
    publisher = Publisher(daemon)
    places = {"ros2": DOMAIN, "foxglove": publisher.url}
    clients = [Client(kind, place, stalls=True) for kind, place in places.items()]
    stopped = [Client(kind, place) for kind, place in places.items()]
    reading = [Client(kind, place) for kind, place in places.items()]
    sizes, killed, begun_s = [], [], 0.0
    try:
        for client in (*clients, *stopped, *reading):
            client.wait_for("ready")
            client.wait_for("first")
        for client in stopped:
            client.process.send_signal(signal.SIGSTOP)
        begun_s = time.monotonic()
        while publisher.process.poll() is None:
            sizes.append(round(_used(publisher.process.pid)[1] / 1e6, 1))
            print(f"  {time.monotonic() - begun_s:5.0f} s: publisher {sizes[-1]:.1f} MB", flush=True)
            if time.monotonic() - begun_s >= seconds:
                break
            killed = [Client(kind, place) for kind, place in places.items()]
            time.sleep(max(begun_s + len(sizes) * SAMPLE_S - time.monotonic(), 0.0))
            for client in killed:
                client.kill()
        took_s = time.monotonic() - begun_s
        heard = (
            {kind: len(client.report()["stamps_ns"]) for kind, client in zip(places, reading, strict=True)}
            if publisher.process.poll() is None
            else {}
        )
    finally:
        for client in (*clients, *stopped, *reading, *killed):
            if client.process.poll() is None:
                client.kill()
        said = publisher.stop()
    return {"seconds": round(took_s, 1), "resident_mb": sizes, "scans_read": heard, "publisher": said}


def measure_folders(judge):
    """What the devkits report of exported folders."""
    with tempfile.TemporaryDirectory() as name:
        for kind in ("nuscenes", "kitti"):
            command = [*HILSIM, "export", "demo", "-o", str(Path(name) / kind), "--format", kind, "--duration-s", "0.5"]
            subprocess.run([*command, "--set", "sensor.roof.sub_rays=1"], check=True, stdout=subprocess.DEVNULL)
        done = subprocess.run(
            [judge, str(HERE / "outputs_judges.py"), name], capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]}
        )
    return {"code": done.returncode, "report": done.stdout.splitlines(), "errors": done.stderr.splitlines()[-8:]}


def show(part, found):
    """Print a part's figures as a table."""
    print(f"\n{part}")
    for key, value in found.items():
        if isinstance(value, list) and not all(isinstance(each, float) for each in value):
            value = ("\n" + 25 * " ").join(map(str, value))  # noqa: PLW2901 - for print
        elif isinstance(value, dict):
            value = ", ".join(f"{name} {each}" for name, each in value.items())  # noqa: PLW2901 - for print
        print(f"  {key:22} {value}")


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--seconds", type=float, help="of a live part; 60, and 600 for slow, by default")
    parser.add_argument("--turns", type=int, default=3, help="of one worker and two, and of stretches of lateness")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--judge", default=sys.executable, help="Python interpreter with the devkits")
    parser.add_argument("--json", action="store_true", help="print one line of JSON at the end")
    options = parser.parse_args()
    print(describe_machine(), flush=True)
    found = {}
    for part in options.parts:
        seconds = options.seconds or SECONDS.get(part, 0.0)
        if part == "dataset":
            found[part] = measure_dataset(options.seeds, options.turns)
        elif part == "slow":
            found[part] = measure_slow(seconds, options.turns)
        elif part == "folders":
            found[part] = measure_folders(options.judge)
        else:
            found[part] = measure_reading(part, seconds)
        show(part, found[part])
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
