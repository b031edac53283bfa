"""Replaying a capture far larger than what a process should hold: time to the first packet, and resident memory from then on.

The capture is the template's records over and over, each time later, with their device time stamps moved on, so that the first packet that comes tells where
in the capture the replay began. It goes over loopback to an address of our own and needs no rights.
"""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hilsim.capture.pcap import CaptureFile
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE, DATA_PACKET_SIZE, DATA_PORT
from hilsim.families.velodyne.protocol.position import POSITION_PACKET_DTYPE

CAPTURE_BYTES = 5_000_000_000
SPARE_BYTES = 2_000_000_000
SOURCE, DESTINATION = "127.0.9.201", "127.0.9.77"
SAMPLE_INTERVAL_S = 0.2
SETTLED_S = 5.0
FILE_HEADER_SIZE, RECORD_HEADER_SIZE = 24, 16
UDP_PAYLOAD = 42  # Ethernet, IPv4 without options, UDP
HOUR_US = 3_600_000_000
FIRST_PACKET_LIMIT_S = 120.0
NEAR_THE_END_S = 20.0
FAST_SCALE = 0.02


@dataclass(frozen=True)
class Run:
    """One replay of the large capture: where it starts, its interval scale, and after how many seconds it is ended (none: at the capture's end)."""

    name: str
    start_s: float
    interval_scale: float
    seconds: float | None


def records_of(data):
    """Offsets of the records of a classic PCAP file of this machine's byte order."""
    found, at = [], FILE_HEADER_SIZE
    while at < len(data):
        found.append(at)
        at += RECORD_HEADER_SIZE + int.from_bytes(data[at + 8 : at + 12], sys.byteorder)
    return np.array(found) - FILE_HEADER_SIZE


def write_large(path, template, period_s, size):
    """Repeat ``template`` (a PCAP file that lasts ``period_s``, a whole number) to at least ``size`` bytes; returns how long the capture lasts (s)."""
    data = template.read_bytes()
    at = records_of(data)
    body = np.frombuffer(data, np.uint8, offset=FILE_HEADER_SIZE).copy()
    seconds_at = at[:, None] + np.arange(4)
    seconds = np.ascontiguousarray(body[seconds_at]).view("=u4")
    is_data = np.diff(at, append=body.size) == RECORD_HEADER_SIZE + UDP_PAYLOAD + DATA_PACKET_SIZE
    stamp_offset = np.where(is_data, DATA_PACKET_DTYPE.fields["timestamp"][1], POSITION_PACKET_DTYPE.fields["timestamp"][1])
    stamps_at = (at + RECORD_HEADER_SIZE + UDP_PAYLOAD + stamp_offset)[:, None] + np.arange(4)
    stamps = np.ascontiguousarray(body[stamps_at]).view("<u4").astype(np.int64)
    repeats = -(-size // body.size)
    with path.open("wb") as file:
        file.write(data[:FILE_HEADER_SIZE])
        for number in range(repeats):
            body[seconds_at] = (seconds + np.uint32(number * period_s)).astype("=u4").view(np.uint8)
            body[stamps_at] = ((stamps + number * period_s * 1_000_000) % HOUR_US).astype("<u4").view(np.uint8)
            file.write(body)
    return repeats * period_s


def device_stamp_us(payload):
    """The data packet's own time stamp, us past the hour."""
    return int(np.frombuffer(payload, DATA_PACKET_DTYPE)["timestamp"][0])


def resident_kib(pid):
    """VmRSS and RssAnon of a process; None once it has ended."""
    held = {}
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name in {"VmRSS", "RssAnon"}:
                held[name] = int(value.split()[0])
    return held or None


def replay_watched(hilsim, capture, run, first_stamp_us, directory):
    """One replay, its memory sampled from start to end."""
    command = [*hilsim, "replay", capture, "--to", DESTINATION, "--from", SOURCE, "--json", "--metrics", "none"]
    command += ["--pace", "capture", "--retime", "none", "--start-s", str(run.start_s), "--interval-scale", str(run.interval_scale)]
    log, summary = directory / "log", directory / "summary"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver, log.open("wb") as faults, summary.open("wb") as said:
        receiver.bind((DESTINATION, DATA_PORT))
        receiver.settimeout(0.01)
        started = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=faults)
        try:
            payload = first_packet(receiver, process, started)
            first_s = time.monotonic() - started
            samples = sample_memory(process, run.seconds)
        finally:
            end(process)
    if payload is None or not samples:
        return {"run": run.name, "failed": f"exit code {process.returncode}: {' '.join(log.read_text(errors='replace').splitlines()[-1:])}"}
    flows = json.loads(summary.read_text(encoding="utf-8"))["flows"]
    settled = next((sample for sample in samples if sample[0] >= SETTLED_S), samples[-1])
    off_us = (device_stamp_us(payload) - first_stamp_us - round(run.start_s * 1e6) + HOUR_US // 2) % HOUR_US - HOUR_US // 2
    return {
        "run": run.name,
        "start_s": run.start_s,
        "interval_scale": run.interval_scale,
        "first_s": round(first_s, 2),
        "start_off_ms": round(off_us / 1000, 2),
        "watched_s": round(samples[-1][0], 1),
        "rss_5s_mib": round(settled[1] / 1024, 1),
        "rss_end_mib": round(samples[-1][1] / 1024, 1),
        "rss_peak_mib": round(max(sample[1] for sample in samples) / 1024, 1),
        "growth_mib": round((samples[-1][1] - settled[1]) / 1024, 1),
        "anonymous_growth_mib": round((samples[-1][2] - settled[2]) / 1024, 1),
        "sent": sum(flow["sent_packets"] for flow in flows),
        "dropped": sum(flow["dropped_packets"] for flow in flows),
        "exit_code": process.returncode,
    }


def first_packet(receiver, process, started):
    """The first payload, None if the process ends without one."""
    while process.poll() is None and time.monotonic() - started < FIRST_PACKET_LIMIT_S:
        with contextlib.suppress(TimeoutError):
            return receiver.recv(2048)
    return None


def sample_memory(process, seconds):
    """``(seconds, VmRSS, RssAnon)`` in KiB from now until the process ends or ``seconds`` are over."""
    began = time.monotonic()
    samples = []
    while process.poll() is None and (seconds is None or time.monotonic() - began < seconds):
        held = resident_kib(process.pid)
        if held:
            samples.append((time.monotonic() - began, held["VmRSS"], held["RssAnon"]))
        time.sleep(SAMPLE_INTERVAL_S)
    return samples


def end(process):
    """Stop a replay as an operator does; kill it if it does not heed."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
    process.kill()
    process.wait()


def measure_memory(hilsim, template, period_s, directory):
    """Write the large capture, replay it in several ways, remove it; returns one row a run, none where the disk has no room."""
    free = shutil.disk_usage(directory).free
    if free < CAPTURE_BYTES + SPARE_BYTES:
        print(f"memory: left out, {directory} has {free / 1e9:.1f} GB free and {(CAPTURE_BYTES + SPARE_BYTES) / 1e9:.0f} GB are needed")
        return []
    path = Path(directory) / "large.pcap"
    duration_s = write_large(path, template, period_s, CAPTURE_BYTES)
    print(f"memory: a capture of {path.stat().st_size / 1e9:.2f} GB that lasts {duration_s:,} s")
    runs = (
        Run("from the start", 0.0, 1.0, 20.0),
        Run("all of it, fast", 0.0, FAST_SCALE, None),
        Run("from the middle", duration_s / 2 + 0.5, 1.0, 15.0),
        Run("the last seconds", duration_s - NEAR_THE_END_S, 1.0, None),
    )
    first = next(datagram.payload for datagram in CaptureFile(template) if datagram.destination_port == DATA_PORT)
    return [replay_watched(hilsim, path, run, device_stamp_us(first), Path(directory)) for run in runs]


def print_memory(rows):
    """One line a run."""
    for row in rows:
        if "failed" in row:
            print(f"memory, {row['run']}: no packet came: {row['failed']}")
            continue
        print(
            f"memory, {row['run']} (--start-s {row['start_s']:g}, --interval-scale {row['interval_scale']:g}): first packet after {row['first_s']} s,"
            f" {row['start_off_ms']} ms from where it should start; VmRSS {row['rss_5s_mib']} MiB after {SETTLED_S:g} s, {row['rss_end_mib']} after"
            f" {row['watched_s']} s, peak {row['rss_peak_mib']}; growth {row['growth_mib']} MiB ({row['anonymous_growth_mib']} of it anonymous);"
            f" {row['sent']:,} packets sent, {row['dropped']} dropped; exit code {row['exit_code']}"
        )
