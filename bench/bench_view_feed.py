"""The live view's feed: memory over ten minutes of packets, and what following costs the daemon.

    python bench/bench_view_feed.py [--minutes 10] [--seconds 5] [--json FILE]

First, ten minutes of a VLP-16's packets (ten seconds of the demo street, repeated with later stamps) are decoded as fast as the machine goes, into scans of
the last 10 s, a map and series; the memory of the process is read at each minute. Then a daemon sends the demo: without a client, with one that reads,
and with one that has stopped reading; its processor time and its lateness are read in each stretch. It takes at most two minutes.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_timing import describe_machine

import hilsim
from hilsim.capture.batches import CaptureBatches
from hilsim.daemon.control.client import Client
from hilsim.read.scans.stream import SensorStream
from hilsim.show.view.feed.growing_map import GrowingMap
from hilsim.show.view.feed.series import Series, quantile
from hilsim.show.view.feed.store import ScanStore

LOOP_S = 10.0
STORED_S = 10.0
TICKS = os.sysconf("SC_CLK_TCK")


def rss_mb():
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_s(pid):
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(path, minutes):
    """Decode minutes of packets; returns figures."""
    store, growing = ScanStore(seconds=STORED_S, most_bytes=256_000_000), GrowingMap(memory_mb=128.0)
    clock = [0.0]
    series = Series(seconds=600.0, clock_s=lambda: clock[0])

    def publish(scan, packets):
        store.add(scan, packets)
        growing.add(scan)

    stream = SensorStream("roof", publish)
    batches = list(CaptureBatches(path))
    source = batches[0].source[0]
    found, begun_s, used_s = [], time.perf_counter(), time.process_time()
    passes = round(60.0 * minutes / LOOP_S)
    for number in range(passes):
        for batch in batches:
            later = batch._replace(host_stamp_ns=batch.host_stamp_ns + round(number * LOOP_S * 1e9))
            stream.add(later, np.flatnonzero(later.source == source))
        for _ in range(round(LOOP_S * 10)):
            clock[0] += 0.1
            series.add({"sensors": {"roof": {"flows": {"data": {"lateness_max_s": clock[0]}}}}, "replays": []})
        if (number + 1) * LOOP_S % 60 < LOOP_S / 2:
            found.append(round(rss_mb(), 1))
    scans = store.since("roof", 0)
    return {
        "rss_mb_each_minute": found,
        "packets": stream.packets,
        "cpu_us_a_packet": round(1e6 * (time.process_time() - used_s) / stream.packets, 1),
        "times_real_time": round(passes * LOOP_S / (time.perf_counter() - begun_s), 1),
        "stored_scans": len(scans),
        "stored_mb": round(store.used_bytes / 1e6, 1),
        "map_blocks": growing.blocks,
        "series_values": int(series.values("roof/data lateness_max_s")[1].size),
        "lost": stream.losses.lost,
    }


def stretch(daemon, seconds, read):
    """Processor time and lateness of a daemon while ``read`` is called."""
    flow = lambda: daemon.control.state()["sensors"]["roof"]["flows"]["data"]  # noqa: E731
    before, used_s, begun_s = flow(), cpu_s(daemon.pid), time.monotonic()
    while time.monotonic() - begun_s < seconds:
        read()
    used_s, took_s, after = cpu_s(daemon.pid) - used_s, time.monotonic() - begun_s, flow()
    grown = [now - then for now, then in zip(after["lateness"]["cumulative"], before["lateness"]["cumulative"], strict=True)]
    return {
        "cpu_share": round(used_s / took_s, 3),
        "late_p50_us": round(1e6 * quantile(after["lateness"]["bounds_s"], grown, 0.5), 1),
        "late_p99_us": round(1e6 * quantile(after["lateness"]["bounds_s"], grown, 0.99), 1),
        "dropped": after["dropped_packets"] - before["dropped_packets"],
    }


def following(seconds):
    """Run a daemon without a client, with one, and with one that has stopped reading; returns figures."""
    with hilsim.Daemon("demo") as daemon:
        address = daemon.control.address
        found = {}
        for turn in (1, 2):
            found[f"no_client_{turn}"] = stretch(daemon, seconds, lambda: time.sleep(0.1))
            with Client(address).packets() as source:
                found[f"client_{turn}"] = stretch(daemon, seconds, lambda source=source: source.read(0.1))
        with Client(address).packets():
            found["stalled_client"] = stretch(daemon, 3 * seconds, lambda: time.sleep(0.1))
            found["stalled_client"]["packets"] = daemon.control.state()["packet_streams"]
    return found


def main():
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "loop.pcap"
        hilsim.record("demo", path, duration_s=LOOP_S)
        found = {"machine": describe_machine(), "memory": memory(path, options.minutes), "following": following(options.seconds)}
    text = json.dumps(found, indent=1)
    sys.stdout.write(f"{text}\n")
    if options.json:
        options.json.write_text(text)


if __name__ == "__main__":
    main()
