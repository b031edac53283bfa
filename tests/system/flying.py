"""Rigs with a vehicle, programs at their links, and what the daemon says of them."""

import json
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

from hilsim_flight_controller import TIMING_RULES
from hilsim_flight_controller.wire import Writer
from tests.support import ROOM

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = {"px4": "hilsim_flight_controller", "ground": "tests.controllers.ground"}
WHOLE = ["armed", "takeoff", "airborne", "hold", "land", "touchdown", "manual", "disarmed", "done"]
_ROOM = ROOM.split("[[sensor]]")[0]


def vehicle_rig(controller, *stations):
    """A room with a vehicle on the floor; ``controller`` and each of ``stations`` are lines of TOML."""
    tables = "".join(f"[[vehicle.ground_station]]\n{station}\n" for station in stations)
    return (
        f'{_ROOM}\n[platform]\nkind = "vehicle"\n[vehicle]\nposition_m = [0.0, 0.0, -1.0]\nyaw_deg = 0.0\n'
        f"[vehicle.controller]\n{controller}\n{tables}[metrics]\nport = 0\n"
    )


class Programs:
    """Scripted controllers and ground stations as processes."""

    def __init__(self, directory):
        self.directory = directory
        self.started = []

    def start(self, module, *arguments):
        """The flight controller (``px4``) or ``python -m tests.controllers.<module>``; returns the process and where its report will be."""
        path = self.directory / f"{module}-{len(self.started)}.json"
        command = [sys.executable, "-m", PROGRAMS[module], *map(str, arguments), "--report", str(path)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        return process, path

    def close(self):
        for process in self.started:
            process.terminate()
            process.communicate(timeout=20)


def report_of(started, timeout_s=300):
    """The report of a program that ends by itself."""
    process, path = started
    process.wait(timeout=timeout_s)
    return json.loads(path.read_text()) | {"status": process.returncode}


def stopped(started):
    """The report of a program that is stopped."""
    started[0].terminate()
    return report_of(started, 20)


def serious(report, running):
    """Rules that were broken, with their words, but for those of time, and for gaps where the daemon discarded what waited for a controller that fell silent."""
    granted = TIMING_RULES | ({"sequence"} if figures(running).get("hilsim_link_silences_total") else set())
    return {rule: [row["text"] for row in report["faults"] if row["rule"] == rule][:3] for rule in report["broken"] if rule not in granted}


def order(report, *names):
    """Events among ``names``, in order."""
    return [text for _, text in report["events"] if text in names]


def address_of(running):
    return running.await_log(r'"metrics": "(http://[^"]+)/metrics"')[1]


OF_A_BUSY_HOST = {"packets_missed", "packets_late", "sensor_frames_skipped", "controller_silent"}


def faults(running):
    """What /healthz finds at fault, but for packets, sensor frames and motor commands that a busy host costs."""
    try:
        with urllib.request.urlopen(f"{address_of(running)}/healthz", timeout=10) as answer:  # noqa: S310 - the daemon's own loopback address
            found = json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            found = json.load(error)
    return {fault["fault"] for fault in found["faults"]} - OF_A_BUSY_HOST


def figures(running):
    """Every sample of /metrics by its name and labels."""
    with urllib.request.urlopen(f"{address_of(running)}/metrics", timeout=10) as answer:  # noqa: S310 - as above
        return samples_of(answer.read().decode())


def samples_of(metrics):
    """Every sample of the text of /metrics by its name and labels."""
    rows = [line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in rows}


def await_figure(running, name, holds, timeout_s=20.0):
    """The first value of a sample that ``holds``; fails when time is up."""
    end_s = time.monotonic() + timeout_s
    while True:
        value = figures(running).get(name)
        if value is not None and holds(value):
            return value
        assert time.monotonic() < end_s, f"{name} stayed {value}:\n{running.text()[-3000:]}"
        time.sleep(0.1)


def events(running, name):
    """Lines of the daemon's log of an event."""
    return [json.loads(line) for line in running.text().splitlines() if re.search(rf'"event": "{re.escape(name)}"', line)]


def first_bytes(cable, timeout_s=10.0):
    """The first that comes out of a cable's far end."""
    end_s = time.monotonic() + timeout_s
    while not (came := cable.read()):
        assert time.monotonic() < end_s, "nothing came"
        time.sleep(0.02)
    return came


class Nuisance:
    """Ground stations that one would rather not have: one floods, one never reads, one vanishes in the middle of a frame, and sends noise before."""

    def __init__(self, udp_port, tcp_port):
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.connect(("127.0.0.1", udp_port))
        self.deaf = socket.socket()
        self.deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.deaf.connect(("127.0.0.1", tcp_port))
        self.vanishing = socket.create_connection(("127.0.0.1", tcp_port))
        self.frame = Writer(77, 190).unknown(70_077, bytes(range(1, 201)))
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._flood, daemon=True)

    def begin(self):
        self.thread.start()
        self.vanishing.sendall(b"noise" * 100 + self.frame[:50])
        self.vanishing.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.vanishing.close()

    def _flood(self):
        """Some 5,000 frames a second: a megabyte."""
        while not self.ended.wait(0.01):
            for _ in range(50):
                with suppress(OSError):
                    self.udp.send(self.frame)

    def end(self):
        self.ended.set()
        self.thread.join()
        self.udp.close()
        self.deaf.close()
