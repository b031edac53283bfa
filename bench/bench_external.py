"""Poses from another simulator beside two VLP-16s: what they cost the packet path, and how exactly sensors follow them.

    python bench/bench_external.py [--seconds 60] [--objects 200] [--json FILE]

A rig with two VLP-16s is moved by a process of its own: the platform at 1 kHz, 20 m/s and 90 deg/s, and objects at 60 Hz, with 5 ms of jitter, 2 % of all
datagrams lost, and a clock of the sender's own. Stretches with and without the sender take turns, ten seconds each. Reported for both: how late packets left (the
daemon's own histogram), packets late, dropped or not rendered. The pose that was rendered at each firing is taken from the recording, and
compared with the sender's path: across it, along it (as an error of the declared delay), and in its turn. Then the recording is replayed between walls
without noise, and each turn of the first lidar is decoded by velodyne-decoder and fitted to the walls along the sender's path (``decoded_poses``).
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_timing import describe_machine
from decoded_poses import SCENE, pose_error, turns_of

import hilsim
from hilsim.compilation.jit import kernel
from hilsim.config.rig import load_rig
from hilsim.daemon.running_rig import RunningRig
from hilsim.parts.external.recording import load_recording
from hilsim.world.platforms.live import live_state

STRETCH_S, SETTLED_S = 10.0, 1.5
DELAY_MS, PORT = 50.0, 24210
FIRING_NS = 55_296
SPEED_MPS, TURN_RADPS = 20.0, math.radians(90.0)
RADIUS_M = SPEED_MPS / TURN_RADPS
FOREIGN_NS = 1_000_000_000_000
MOUNT_M = np.array((0.0, 0.0, 1.9))
SENDER = """
import heapq, math, random, socket, sys, time
import numpy as np
from hilsim.parts.external.messages import MessageKind, encode, poses_of

seconds, objects, port, foreign_ns = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
speed, turn = 20.0, math.radians(90.0)
radius, chance = speed / turn, random.Random(7)
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
encode(MessageKind.POSES, poses_of([0], [(0.0, 0.0, 0.0)], [(1.0, 0.0, 0.0, 0.0)]), time_ns=0)  # loads its kernels
begun = time.monotonic_ns()
print(begun, flush=True)
platform, things, number, waiting = begun, begun, 0, []
rows = np.arange(objects)
poses = poses_of(range(1, objects + 1), np.zeros((objects, 3)), np.tile((1.0, 0.0, 0.0, 0.0), (objects, 1)))
while (now := time.monotonic_ns()) < begun + seconds * 1e9:
    while platform <= now:
        angle = turn * 1e-9 * platform
        half = 0.5 * (angle + 0.5 * math.pi)
        one = poses_of([0], [(radius * math.cos(angle), radius * math.sin(angle), 1.5)], [(math.cos(half), 0.0, 0.0, math.sin(half))])
        payload = encode(MessageKind.POSES, one, time_ns=platform + foreign_ns, sender=1, sequence=number)
        number += 1
        if chance.random() > 0.02:
            heapq.heappush(waiting, (platform + int(5e6 * chance.random()), number, payload))
        platform += 1_000_000
    while things <= now:
        angle = 1e-9 * things * 5.0 / (20.0 + rows % 20) + rows
        poses["position_m"] = np.stack([(20.0 + rows % 20) * np.cos(angle), (20.0 + rows % 20) * np.sin(angle), 1.0 + 0 * angle], axis=1)
        payload = encode(MessageKind.POSES, poses, time_ns=things + foreign_ns, sender=1, sequence=number) if objects else b""
        number += 1
        if payload and chance.random() > 0.02:
            heapq.heappush(waiting, (things + int(5e6 * chance.random()), number, payload))
        things += 16_666_667
    while waiting and waiting[0][0] <= time.monotonic_ns():
        link.sendto(heapq.heappop(waiting)[2], ("127.0.0.1", port))
    due = min(platform, things, waiting[0][0] if waiting else platform)
    time.sleep(max(due - time.monotonic_ns(), 0) * 1e-9)
"""


def write_rig(folder, objects):
    """Two VLP-16s on a platform that is moved, in the street; returns the rig's path."""
    text = f"""
name = "moved"
seed = 3
[platform]
kind = "external"
[scene]
generator = "street"
[external]
listen = "udp:127.0.0.1:{PORT}"
delay_ms = {DELAY_MS}
record = "keys"
[metrics]
port = 0
"""
    text += "".join(
        f'[[external.object]]\nid = {number}\nbox = {{ name = "thing {number}", size_m = [1.0, 1.0, 2.0] }}\n' for number in range(1, objects + 1)
    )
    for number in range(2):
        text += f"""
[[sensor]]
name = "lidar{number}"
mount_position_m = [{-number}.0, 0.0, 1.9]
[sensor.network]
source = "127.0.1.{210 + number}"
destination = "127.0.0.1"
source_ports = "any"
data_port = {24200 + 2 * number}
position_port = {24201 + 2 * number}
"""
    path = folder / "rig.toml"
    path.write_text(text, encoding="utf-8")
    return path


def sent(running):
    """Counts of the data flows and of the sensors, and the histogram of lateness."""
    reading = running.reading()
    flows = [flow for flow in reading.flows if flow.flow == "data"]
    lost = sum(flow.late_packets + flow.dropped_packets for flow in flows) + sum(sensor.render_skipped_packets for sensor in reading.sensors)
    return np.array([lost, *np.sum([flow.lateness.cumulative for flow in flows], axis=0)]), reading


def quantile_us(cumulative, ratio):
    """Upper edge of the bucket (us) that holds a quantile."""
    from hilsim.telemetry.metrics import TIMING_BOUNDS_S  # noqa: PLC0415

    row = int(np.searchsorted(cumulative, ratio * cumulative[-1]))
    return 1e6 * TIMING_BOUNDS_S[row] if row < len(TIMING_BOUNDS_S) else math.inf


@kernel
def poses_at(live, time_ns, position_m, orientation):
    """Poses at rig times."""
    for row in range(time_ns.size):
        place, turn = live_state(live, time_ns[row])
        for axis in range(3):
            position_m[row, axis] = place[axis]
        for part in range(4):
            orientation[row, part] = turn[part]


def followed(folder, epoch_ns, stretches, objects):
    """Errors at each firing of the stretches (monotonic nanoseconds): across (m), of the delay (s), of the turn about the path's (deg)."""
    live = load_recording(folder / "keys", range(1, objects + 1)).live
    across, delay_s, turned = [], [], []
    for begin_ns, end_ns in stretches:
        firing_ns = np.arange(begin_ns - epoch_ns, end_ns - epoch_ns, FIRING_NS)
        position, orientation = np.empty((len(firing_ns), 3)), np.empty((len(firing_ns), 4))
        poses_at(live, firing_ns, position, orientation)
        angle = TURN_RADPS * 1e-9 * (firing_ns + epoch_ns - round(DELAY_MS * 1e6))
        found = np.arctan2(position[:, 1], position[:, 0])
        behind = np.remainder(angle - found + np.pi, 2.0 * np.pi) - np.pi
        across.append(np.hypot(np.hypot(position[:, 0], position[:, 1]) - RADIUS_M, position[:, 2] - 1.5))
        delay_s.append(behind / TURN_RADPS)
        half = 0.5 * (found + 0.5 * np.pi)
        alike = np.abs(orientation[:, 0] * np.cos(half) + orientation[:, 3] * np.sin(half))
        turned.append(np.degrees(2.0 * np.arccos(np.minimum(alike, 1.0))))
    return np.concatenate(across), np.concatenate(delay_s), np.concatenate(turned)


def decoded(folder, epoch_ns, stretches, delay_s):
    """Errors of place (m), of turn (deg) and what is left (m) of each whole turn inside the stretches, of the first lidar without noise, from its packets alone."""
    text = (folder / "rig.toml").read_text(encoding="utf-8").split("[[sensor]]")
    text = (
        text[0]
        + "[[sensor]]"
        + text[1].replace('name = "lidar0"', 'name = "lidar0"\nsub_rays = 1\noverride = { range_noise_m = 0.0, detector = {}, signal = {} }')
    )
    text = text.replace('[scene]\ngenerator = "street"\n', SCENE).replace('record = "keys"', 'time = "replay"\nfile = "keys"')
    (folder / "walls.toml").write_text(text, encoding="utf-8")
    emulator = hilsim.Emulator(folder / "walls.toml")
    errors = []
    for begin_ns, end_ns in stretches:
        span = (1e-9 * (begin_ns - epoch_ns), 1e-9 * (end_ns - epoch_ns))
        payloads = [packet.payload for packet in emulator.packets(*span) if len(packet.payload) == 1206]
        for time_s, points in turns_of(payloads):
            if time_s.min() < span[0] or time_s.max() > span[1]:
                continue
            angle = TURN_RADPS * (time_s + 1e-9 * epoch_ns - delay_s)
            heading = angle + 0.5 * np.pi
            position = np.stack([RADIUS_M * np.cos(angle), RADIUS_M * np.sin(angle), np.full_like(angle, 1.5)], axis=1)
            cos, sin, zero, one = np.cos(heading), np.sin(heading), np.zeros_like(angle), np.ones_like(angle)
            rotation = np.stack([cos, -sin, zero, sin, cos, zero, zero, zero, one], axis=1).reshape(-1, 3, 3)
            fitted = pose_error(points + MOUNT_M, position, rotation)
            errors += [] if fitted is None else [fitted]
    return np.array(errors)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--objects", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {"machine": describe_machine(), "objects": options.objects, "seconds": options.seconds}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        running = RunningRig(rig=load_rig(write_rig(folder, options.objects)))
        running.build()
        running.open()
        running.start()
        totals, stretches = {True: 0, False: 0}, []
        time.sleep(3.0)
        try:
            for number in range(max(round(options.seconds / STRETCH_S), 2)):
                has_sender = number % 2 == 0
                process = None
                if has_sender:
                    command = [sys.executable, "-c", SENDER, str(STRETCH_S + 2.0), str(options.objects), str(PORT), str(FOREIGN_NS)]
                    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
                    begun_ns = int(process.stdout.readline())
                    stretches.append((begun_ns + round(SETTLED_S * 1e9), begun_ns + round(STRETCH_S * 1e9)))
                    time.sleep(1.0)
                before, _ = sent(running)
                for _ in range(round(2 * (STRETCH_S - 1.0))):
                    time.sleep(0.5)
                    running.pace()
                after, reading = sent(running)
                totals[has_sender] = totals[has_sender] + (after - before)
                if process is not None:
                    process.wait()
                    time.sleep(1.0)
            external, epoch_ns = reading.parts["external"][0], running.clock.epoch_ns
        finally:
            running.stop()
        across, delay_s, turned = followed(folder, epoch_ns, stretches, options.objects)
        turns = decoded(folder, epoch_ns, stretches, 1e-3 * DELAY_MS + float(np.median(delay_s)))
    for label, has_sender in (("with poses", True), ("without", False)):
        lost, *cumulative = totals[has_sender].tolist()
        found[label] = {"packets": cumulative[-1], "missed": lost} | {f"late_p{100 * q:g}_us": quantile_us(cumulative, q) for q in (0.5, 0.99, 0.999)}
        print(f"{label:10}: {found[label]}")
    found["external"] = {
        "messages": external.messages,
        "lost": external.lost_messages,
        "poses": external.poses,
        "late": external.refused_poses["late"],
        "keys": external.keys,
        "extrapolated": external.extrapolated_keys,
        "stalls": external.stalls,
    }
    found["firings"] = len(across)
    for what, values in (("across_mm", 1e3 * across), ("delay_error_ms", 1e3 * delay_s), ("turn_deg", turned)):
        found[what] = {"median": float(np.median(values)), "p99.9": float(np.quantile(np.abs(values), 0.999)), "max": float(np.abs(values).max())}
    found["decoded"] = {"turns": len(turns)} | {
        name: {"median": float(np.median(values)), "max": float(values.max())}
        for name, values in (("place_mm", 1e3 * turns[:, 0]), ("turn_deg", turns[:, 1]), ("left_mm", 1e3 * turns[:, 2]))
    }
    print(f"decoded: {found['decoded']}")
    print(found["external"])
    print(f"{found['firings']} firings: " + ", ".join(f"{what} {found[what]}" for what in ("across_mm", "delay_error_ms", "turn_deg")))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
