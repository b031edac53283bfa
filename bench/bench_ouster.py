"""An Ouster on a wire of 1500 bytes: which profiles and modes this machine carries, and what they cost.

    sudo python bench/bench_ouster.py live [--beams 32 64 128] [--profiles ...] [--modes ...] [--json FILE]

Two network namespaces joined by a pair of virtual interfaces: a daemon with one sensor in the demo street on one side, ouster-cli of ``.venv-ouster`` on
the other. Each row is 20 frames of a mode and a profile: frames that the vendor's client got whole, processor time of the daemon (with what the kernel does
for it), how late lidar packets left, and packets late, dropped or not rendered (the daemon's own metrics). The client runs on the same cores.
"""

import argparse
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_changes import COUNTERS, grown
from bench_gazebo import cost_of
from bench_timing import describe_machine
from replay_captures import FIRST_SOURCE
from replay_wire import DESTINATION, wire

CLIENT = Path(__file__).resolve().parents[1] / ".venv-ouster" / "bin" / "ouster-cli"
BEAMS = (32, 64, 128)
MODES = ("512x10", "1024x10", "2048x10", "512x20", "1024x20")
PROFILES = (
    "LEGACY",
    "RNG19_RFL8_SIG16_NIR16",
    "RNG19_RFL8_SIG16_NIR16_DUAL",
    "RNG15_RFL8_NIR8",
    "RNG15_RFL8_NIR8_DUAL",
    "FUSA_RNG15_RFL8_NIR8_DUAL",
)
START_S = 300.0
STATS = re.compile(r"Incomplete Frames: (\d+).*?(\d+) missing lidar packets")
RIG = """
name = "ouster"
seed = 4
[scene]
generator = "street"
[platform]
kind = "street"
[metrics]
port = 9090
[[sensor]]
name = "roof"
profile = "os1-{beams}"
network = {{ source = "{source}", source_ports = "any", destination = "{destination}" }}
web = {{ port = 80, boot_s = 0.1 }}
"""
ASK = """
import sys, urllib.request
method, url, body = sys.argv[1:]
request = urllib.request.Request(url, body.encode() or None, method=method)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
sys.stdout.write(opener.open(request, timeout=20).read().decode())
"""


def ask(namespace, url, method="GET", body=""):
    """Answer of a server in a namespace."""
    command = ["ip", "netns", "exec", namespace, sys.executable, "-c", ASK, method, url, body]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def metrics(namespace):
    """Figures of the daemon by their text up to the value."""
    lines = ask(namespace, "http://127.0.0.1:9090/metrics").splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))}


def late_p99_us(before, after):
    """99th percentile of how late lidar packets left, as far as the histogram's buckets tell."""
    counts = {}
    for name, value in after.items():
        if name.startswith("hilsim_lateness_seconds_bucket{") and 'flow="lidar"' in name:
            counts[float(name.split('le="')[1].split('"')[0])] = value - before.get(name, 0.0)
    total = counts.get(float("inf"), 0.0)
    return next((bound * 1e6 for bound in sorted(counts) if total and counts[bound] >= 0.99 * total), float("nan"))


@contextlib.contextmanager
def sensor(names, source, beams, folder):
    """A daemon with one sensor, which has started."""
    rig, log = folder / f"{beams}.toml", folder / f"{beams}.log"
    rig.write_text(RIG.format(beams=beams, source=source, destination=DESTINATION))
    with log.open("wb") as output:
        daemon = subprocess.Popen(names.send_by([sys.executable, "-m", "hilsim", "run", rig]), stderr=output)
    try:
        deadline = time.monotonic() + START_S
        while '"event": "daemon.started"' not in log.read_text():
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the daemon did not start:\n{log.read_text()}")
            time.sleep(0.1)
        yield daemon
    finally:
        daemon.terminate()
        daemon.wait(60)


def set_up(names, source, mode, profile):
    """Set mode and profile, and wait until the sensor runs."""
    address = f"http://{source}/api/v1/sensor"
    ask(names.receiver, f"{address}/config?persist=false", "POST", json.dumps({"lidar_mode": mode, "udp_profile_lidar": profile}))
    while json.loads(ask(names.receiver, f"{address}/metadata/sensor_info"))["status"] != "RUNNING":
        time.sleep(0.05)
    time.sleep(0.3)


def measure(names, source, daemon, frames):
    """Read frames with the vendor's client; returns one row."""
    before, (_, used_s), begun_s = metrics(names.sender), cost_of(daemon.pid), time.monotonic()
    command = ["ip", "netns", "exec", names.receiver, CLIENT, "source", source, "slice", f"0:{frames}", "stats"]
    try:
        text = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=60, env={"HOME": "/", "PATH": "/usr/bin:/usr/sbin:/bin"}
        ).stdout
    except subprocess.TimeoutExpired:
        text = ""
    cores = (cost_of(daemon.pid)[1] - used_s) / (time.monotonic() - begun_s)
    after = metrics(names.sender)
    count, missing = re.search(r"Count: (\d+)", text), STATS.search(text)
    return {
        "frames": int(count[1]) if count else 0,
        "incomplete": int(missing[1]) if missing else frames,
        "missing_packets": int(missing[2]) if missing else None,
        "cores": cores,
        "p99_us": late_p99_us(before, after),
        "sent": grown(before, after, "hilsim_sent_packets_total"),
        **{name: grown(before, after, name) for name in COUNTERS},
    }


def main():
    """Measure, print, store."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["live"])
    parser.add_argument("--beams", type=int, nargs="+", default=BEAMS)
    parser.add_argument("--modes", nargs="+", default=MODES)
    parser.add_argument("--profiles", nargs="+", default=PROFILES)
    parser.add_argument("--frames", type=int, default=20)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if not CLIENT.is_file():
        raise SystemExit(f"{CLIENT}: ouster-sdk must be installed there")
    source, rows = str(FIRST_SOURCE), []
    print("| beams | mode | profile | whole frames | cores | p99 late | late | dropped | not rendered | |\n|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, wire(1) as names:
        for beams in arguments.beams:
            with sensor(names, source, beams, Path(folder)) as daemon:
                for mode in arguments.modes:
                    for profile in arguments.profiles:
                        set_up(names, source, mode, profile)
                        row = measure(names, source, daemon, arguments.frames)
                        rows.append({"beams": beams, "mode": mode, "profile": profile, **row})
                        late, dropped, skipped, _ = (row[name] for name in COUNTERS)
                        whole = row["frames"] - row["incomplete"]
                        verdict = "" if whole >= arguments.frames and not dropped + skipped else "not carried"
                        print(
                            f"| {beams} | {mode} | {profile} | {whole} of {arguments.frames} | {row['cores']:.2f} | {row['p99_us']:.0f} us "
                            f"| {late:.0f} | {dropped:.0f} | {skipped:.0f} | {verdict} |",
                            flush=True,
                        )
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": describe_machine(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
