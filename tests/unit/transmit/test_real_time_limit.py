"""Real-time threads that work without sleeping, under the kernel's own limit."""

import os
import resource
import signal
import subprocess
import sys
import threading

import pytest

from hilsim.transmit.real_time_limit import LONGEST_STRETCH_S, leave_real_time, real_time_limited

SPINNING = """
import os, threading
from hilsim.transmit.real_time_limit import leave_real_time, real_time_limited
from hilsim.transmit.scheduling import ThreadSettings, enter

left, busy = [], threading.Event()

def spin():
    enter(ThreadSettings(scheduling="fifo", priority=1))
    while not left:
        pass
    busy.set()

with real_time_limited(lambda: left.extend(leave_real_time())):
    threading.Thread(target=spin, name="spinner").start()
    assert busy.wait(60.0)
print(left)
"""


def is_permitted():
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


@pytest.mark.skipif(not is_permitted(), reason="SCHED_FIFO is not permitted here")
def test_a_real_time_thread_that_never_sleeps_is_made_an_ordinary_one():
    done = subprocess.run([sys.executable, "-c", SPINNING], capture_output=True, text=True, check=True, timeout=120)

    assert done.stdout.strip() == "['spinner']"


@pytest.mark.skipif(not is_permitted(), reason="SCHED_FIFO is not permitted here")
def test_threads_that_leave_real_time_are_named_once():
    ready, over = threading.Event(), threading.Event()

    def wait():
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        ready.set()
        over.wait()

    thread = threading.Thread(target=wait, name="patient")
    thread.start()
    ready.wait()
    try:
        assert leave_real_time() == ("patient",)
        assert leave_real_time() == ()
    finally:
        over.set()
        thread.join()


def test_the_limit_and_the_signal_are_as_before_behind_the_block():
    limits, handler = resource.getrlimit(resource.RLIMIT_RTTIME), signal.getsignal(signal.SIGXCPU)

    with real_time_limited(lambda: None):
        assert resource.getrlimit(resource.RLIMIT_RTTIME)[0] <= LONGEST_STRETCH_S * 1e6
        assert signal.getsignal(signal.SIGXCPU) is not handler

    assert (resource.getrlimit(resource.RLIMIT_RTTIME), signal.getsignal(signal.SIGXCPU)) == (limits, handler)
