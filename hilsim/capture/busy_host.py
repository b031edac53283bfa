"""Waiting time for a processor on this host, which affects arrival times and sending programs on a busy host."""

import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

_NAP_S = 0.001


class BusyHost:
    """Measures how long a lightly loaded thread waits for a processor; a context manager that owns the thread.

    It reads the kernel's count (``run_delay``, the second number of ``/proc/self/task/TID/schedstat``), so waiting for the GIL does not
    count. With a kernel without it (``CONFIG_SCHED_INFO``) the count is zero.
    """

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._known = threading.Event()
        self._thread = threading.Thread(target=self._run, name="busy-host", daemon=True)
        self._count = Path()
        self._waited_ns: int | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._known.wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._waited_ns = self.waited_ns
        self._stop.set()
        self._thread.join()

    @property
    def waited_ns(self) -> int:
        """Waiting time in nanoseconds since the start; after the end, up to it."""
        if self._waited_ns is not None:
            return self._waited_ns
        try:
            return int(self._count.read_text().split()[1])
        except (OSError, IndexError, ValueError):
            return 0

    def _run(self) -> None:
        self._count = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        self._known.set()
        while not self._stop.is_set():
            time.sleep(_NAP_S)
