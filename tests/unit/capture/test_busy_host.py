import os
import subprocess
import sys
import time

import pytest

from hilsim.capture.busy_host import BusyHost


@pytest.fixture
def _greedy():
    """A program that never sleeps, and what is started here, share one processor."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    with subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        yield
        child.kill()
    os.sched_setaffinity(0, before)


@pytest.mark.usefixtures("_greedy")
def test_waiting_for_another_program_counts():
    with BusyHost() as host:
        deadline_s = time.monotonic() + 60.0
        while host.waited_ns < 20_000_000 and time.monotonic() < deadline_s:
            time.sleep(0.05)
    assert host.waited_ns >= 20_000_000


def test_the_count_stands_still_after_the_end():
    with BusyHost() as host:
        pass
    ended_ns = host.waited_ns
    assert (host.waited_ns, host._thread.is_alive()) == (ended_ns, False)
