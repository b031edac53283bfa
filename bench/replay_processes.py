"""Running measured senders: cost, end and output."""

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path

import numpy as np

SAMPLE_INTERVAL_S = 0.05
TICKS_HZ = os.sysconf("SC_CLK_TCK")


def cpu_of(pid):
    """User and system seconds of a process so far, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_HZ  # utime and stime, fields 14 and 15 of proc(5)


class Sender:
    """One process and its CPU time over CLOCK_MONOTONIC."""

    def __init__(self, command, directory, number):
        self._said, self._faults = directory / f"said{number}", directory / f"faults{number}"
        with self._said.open("wb") as said, self._faults.open("wb") as faults:
            self.started_ns = time.monotonic_ns()
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=faults)
        self._samples = [(self.started_ns, 0.0)]
        self.cpu_s = self.wall_s = None

    @property
    def running(self):
        """Whether it has not been seen to end."""
        return self._process.returncode is None

    def look(self):
        """Note its CPU time, or its end."""
        pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
        now_ns = time.monotonic_ns()
        if pid == 0:
            self._samples.append((now_ns, cpu_of(self._process.pid)))
            return
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.wall_s = (now_ns - self.started_ns) / 1e9
        self._samples.append((now_ns, self.cpu_s))

    def kill(self):
        """End it and note what it cost until then."""
        self._process.kill()
        while self.running:
            self.look()
            time.sleep(0.001)

    def cpu_share(self, first_ns, last_ns):
        """Share of one core between two instants."""
        times, seconds = np.array(self._samples).T
        return float(np.diff(np.interp([first_ns, last_ns], times, seconds))[0] / ((last_ns - first_ns) / 1e9))

    def fault(self):
        """Its output when it failed, else None."""
        if self._process.returncode == 0:
            return None
        last = self._faults.read_text(errors="replace").strip().splitlines()[-1:]
        return f"exit code {self._process.returncode}: {' '.join(last)}"

    def summary(self):
        """Its standard output as JSON, None if it is none."""
        with contextlib.suppress(ValueError):
            return json.loads(self._said.read_text(errors="replace"))
        return None


def run_senders(commands, directory, limit_s):
    """Start processes together and follow them to their end; those that run longer than ``limit_s`` are killed."""
    senders = []
    try:
        for number, command in enumerate(commands):
            senders.append(Sender(command, directory, number))
        limit_ns = time.monotonic_ns() + int(limit_s * 1e9)
        while any(sender.running for sender in senders) and time.monotonic_ns() < limit_ns:
            time.sleep(SAMPLE_INTERVAL_S)
            for sender in senders:
                if sender.running:
                    sender.look()
    finally:
        for sender in senders:
            if sender.running:
                sender.kill()
    return senders
