"""The machine's standstills: intervals in which a process that wakes each millisecond did not run.

``python tests/standstills.py FILE`` is that process: one thread per core, each bound to its core. It imports nothing but the standard library.
``Machine`` reads its file from any other process, by intervals of CLOCK_MONOTONIC, which all processes share.
"""

import contextlib
import mmap
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

GAP_NS = 20_000_000
"""Shorter gaps are not stored: an ordinary process on a busy machine waits that long for its turn."""

_WAKE_S = 0.001
_BEHIND_S = 30.0
_GAP = struct.Struct("<qq")
_SEEN = struct.Struct("<q")


class Machine:
    """The machine's standstills, as the watcher stored them.

    Args:
        path: The watcher's file.
    """

    def __init__(self, path):
        self._gaps, self._seen = Path(path), _seen_path(path)

    def longest_ns(self, began_ns, ended_ns):
        """The longest standstill (ns) that overlaps an interval of CLOCK_MONOTONIC; 0 without one of 20 ms or more.

        Raises:
            RuntimeError: the watcher did not see the interval's end within 30 s.
        """
        self._await(ended_ns)
        return max((end - begin for begin, end in self._stored() if begin < ended_ns and end > began_ns), default=0)

    def awake_s(self, began_s, ended_s):
        """Seconds of an interval of CLOCK_MONOTONIC (s) in which the machine did not stand still, for what cannot be repeated, as a flight."""
        began_ns, ended_ns = round(began_s * 1e9), round(ended_s * 1e9)
        self._await(ended_ns)
        awake_ns, at_ns = 0, began_ns
        for begin_ns, end_ns in sorted(self._stored()):
            if end_ns > at_ns and begin_ns < ended_ns:
                awake_ns += max(begin_ns - at_ns, 0)
                at_ns = end_ns
        return (awake_ns + max(ended_ns - at_ns, 0)) * 1e-9

    def intervals(self, repeats=3):
        """Contexts for a judgement of wall time: a failed one is repeated if the machine stood still in it, at most ``repeats`` times.

        Use as ``for interval in machine.intervals():`` ``with interval:`` (act and assert). The loop ends with the first context that passes.
        """
        for left in range(repeats, -1, -1):
            interval = _Interval(self, may_fail=left > 0)
            yield interval
            if interval.has_passed:
                return

    def _await(self, at_ns):
        until_s = time.monotonic() + _BEHIND_S
        while min(value for (value,) in _SEEN.iter_unpack(self._seen.read_bytes())) < at_ns:
            if time.monotonic() > until_s:
                message = f"{self._gaps}: the watcher of the machine's standstills must have seen {at_ns} ns within {_BEHIND_S:g} s; does it run?"
                raise RuntimeError(message)
            time.sleep(_WAKE_S)

    def _stored(self):
        data = self._gaps.read_bytes()
        return _GAP.iter_unpack(data[: len(data) // _GAP.size * _GAP.size])


class _Interval:
    """One attempt at a judgement of wall time."""

    def __init__(self, machine, *, may_fail):
        self._machine, self._may_fail, self._began_ns = machine, may_fail, 0
        self.has_passed = False

    def __enter__(self):
        self._began_ns = time.monotonic_ns()
        return self

    def __exit__(self, kind, error, trace):
        self.has_passed = kind is None
        is_judgement = kind is not None and issubclass(kind, AssertionError)
        return is_judgement and self._may_fail and self._machine.longest_ns(self._began_ns, time.monotonic_ns()) > 0


class Watcher:
    """The watching process; started once per run of the tests, and ended with it."""

    def __init__(self, path):
        self.path = Path(path)
        self._process = subprocess.Popen([sys.executable, "-I", "-S", __file__, str(path)])
        until_s = time.monotonic() + _BEHIND_S
        while not _seen_path(path).exists():
            if self._process.poll() is not None or time.monotonic() > until_s:
                message = f"{path}: the watcher of the machine's standstills did not start (exit {self._process.poll()})"
                raise RuntimeError(message)
            time.sleep(_WAKE_S)

    def end(self):
        """End the process."""
        self._process.terminate()
        self._process.wait()


def _seen_path(path):
    return Path(f"{path}.seen")


def _watch(core, slot, seen, gaps):
    with contextlib.suppress(OSError):  # where binding is not permitted the scheduler chooses the core
        os.sched_setaffinity(0, {core})
    last_ns = time.monotonic_ns()
    while True:
        time.sleep(_WAKE_S)
        now_ns = time.monotonic_ns()
        if now_ns - last_ns > GAP_NS:
            os.write(gaps, _GAP.pack(last_ns, now_ns))
        _SEEN.pack_into(seen, slot * _SEEN.size, now_ns)
        last_ns = now_ns


def _main(path):
    cores = sorted(os.sched_getaffinity(0))
    gaps = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    made = Path(f"{path}.new")
    made.write_bytes(_SEEN.pack(time.monotonic_ns()) * len(cores))
    with made.open("r+b") as file:
        seen = mmap.mmap(file.fileno(), 0)
    for slot, core in enumerate(cores):
        threading.Thread(target=_watch, args=(core, slot, seen, gaps), daemon=True).start()
    made.rename(_seen_path(path))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests, which end this process
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.2)


if __name__ == "__main__":
    _main(sys.argv[1])
