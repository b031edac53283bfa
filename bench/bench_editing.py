"""Edits over the control socket: how long from the call to the packet that shows it.

    python bench/bench_editing.py [--edits 200] [--json FILE]

One daemon sends a VLP-16 in the demo street with ``lead_ms = 8``, from a sensor that stands still. A sphere is moved around the sensor and away from it,
so that every firing shows at once where it is; a receiver looks for the first packet whose distances are those of the sphere, or are not any more.
Then each of several boxes that the rig has standing still is edited for the first time: it leaves the tiles of the daemon's scene.
"""

import argparse
import json
import socket
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench_timing import describe_machine

import hilsim

PORT, RADIUS_M, BOXES, TIMEOUT_S = 24300, 2.0, 10, 10.0
HERE, AWAY = (0.0, -24.0, 1.9), (0.0, 60.0, 40.0)
GOAL_MS = 100.0
RIG = """
name = "editing"
seed = 4
lead_ms = 8.0
[scene]
generator = "street"
{boxes}
[platform]
position_m = {here}
[[sensor]]
name = "roof"
[sensor.network]
destination = "127.0.0.1"
data_port = {port}
position_port = {position}
[metrics]
port = 0
[control]
socket = "control"
"""
BOX = '[[scene.box]]\nname = "box {number}"\nsize_m = [0.5, 0.5, 0.5]\nposition_m = [{x}, -15.0, 0.25]\n'


class Watcher(threading.Thread):
    """Receives data packets, and notes when their distances become, or stop to be, those of the sphere."""

    def __init__(self):
        super().__init__(daemon=True)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", PORT))
        self._socket.settimeout(0.2)
        self.turned_s = {True: 0.0, False: 0.0}
        self.has_ended = False

    def run(self):
        """Receive until ``has_ended``."""
        was_here = None
        while not self.has_ended:
            try:
                packet = self._socket.recv(2000)
            except TimeoutError:
                continue
            now_s = time.monotonic()
            distances_m = [int.from_bytes(packet[1104 + 3 * record : 1106 + 3 * record], "little") * 0.002 for record in range(32)]
            is_here = sum(abs(distance_m - RADIUS_M) < 0.2 for distance_m in distances_m) > 24
            if is_here != was_here:
                self.turned_s[is_here] = now_s
                was_here = is_here
        self._socket.close()

    def waited_s(self, *, is_here, since_s):
        """Time until the first packet that shows the sphere, or not, at this place."""
        while self.turned_s[is_here] < since_s:
            if time.monotonic() > since_s + TIMEOUT_S:
                sys.exit(f"no packet showed the edit within {TIMEOUT_S:g} s")
            time.sleep(0.0005)
        return self.turned_s[is_here] - since_s


def measured(session, watcher, edits):
    """Milliseconds from each call to its packet, and to the call's return."""
    shown_ms, returned_ms = [], []
    for number in range(edits):
        is_here = number % 2 == 0
        begun_s = time.monotonic()
        session.move("sphere", HERE if is_here else AWAY)
        returned_ms.append(1e3 * (time.monotonic() - begun_s))
        shown_ms.append(1e3 * watcher.waited_s(is_here=is_here, since_s=begun_s))
        time.sleep(0.02)
    return shown_ms, returned_ms


def first_edits(session):
    """Milliseconds that the first edit of each box takes, on the ground, until packets have it."""
    found = []
    for number in range(BOXES):
        begun_s = time.monotonic()
        session.move(f"box {number}", (float(number), -14.0, 0.0), snap=hilsim.Snap(on_ground=True))
        found.append(1e3 * (time.monotonic() - begun_s))
    return found


def summary(times_ms):
    """Median, 99th percentile and largest."""
    ordered = sorted(times_ms)
    return {
        "median_ms": round(statistics.median(ordered), 1),
        "p99_ms": round(ordered[int(0.99 * (len(ordered) - 1))], 1),
        "most_ms": round(ordered[-1], 1),
    }


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "editing.toml"
        boxes = "".join(BOX.format(number=number, x=float(number)) for number in range(BOXES))
        path.write_text(RIG.format(boxes=boxes, here=list(HERE), port=PORT, position=PORT + 1), encoding="utf-8")
        watcher = Watcher()
        watcher.start()
        with hilsim.Daemon(path) as daemon:
            session = hilsim.edit(path, daemon.control)
            session.add("sphere", "sphere", AWAY, radius_m=RADIUS_M, tolerance_m=0.01)
            shown_ms, returned_ms = measured(session, watcher, asked.edits)
            found = {"shown": summary(shown_ms), "returned": summary(returned_ms), "first_edit_of_a_standing_object": summary(first_edits(session))}
            found["over_the_goal"] = sum(each > GOAL_MS for each in shown_ms)
        watcher.has_ended = True
        watcher.join()
    print(describe_machine())
    for name, value in found.items():
        print(f"{name}: {value}")
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
