"""Scheduling of real threads, with and without privileges; each test uses a thread of its own, whose settings end with it."""

import ctypes
import os
import platform
import resource
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hilsim.errors import TransmitError
from hilsim.transmit.memory import lock_memory, unlock_memory
from hilsim.transmit.scheduling import SchedulingMode, ThreadSettings, apply, chosen_spin_us, enter, fifo_refusal

SETRESUID = {"x86_64": 117, "aarch64": 147}
NOBODY = 65534


@pytest.fixture
def thread():
    with ThreadPoolExecutor(1) as pool:
        yield lambda function: pool.submit(function).result()


@pytest.fixture
def unprivileged(thread):
    """A thread without privileges: the raw system call, unlike libc's, changes the calling thread alone."""
    if os.getuid() == 0:

        def drop():
            return ctypes.CDLL(None).syscall(SETRESUID[platform.machine()], NOBODY, NOBODY, NOBODY)

        assert thread(drop) == 0
    return thread


@pytest.fixture
def privileged(thread):
    def attempt():
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))

    try:
        thread(attempt)
    except PermissionError:
        pytest.skip("SCHED_FIFO is not permitted to this user (needs CAP_SYS_NICE or a limit of real-time priority)")
    return thread


def policy():
    return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK


def has_slices():
    major, minor = map(int, platform.release().split(".")[:2])
    return (major, minor) >= (6, 12)


def test_auto_obtains_fifo_with_the_priority_asked_for_where_permitted(privileged):
    obtained = privileged(lambda: enter(ThreadSettings(scheduling="auto", priority=7)))
    assert (obtained.mode, obtained.reason) == (SchedulingMode.FIFO, "")
    assert privileged(lambda: (policy(), os.sched_getparam(0).sched_priority)) == (os.SCHED_FIFO, 7)


def test_children_of_a_fifo_thread_do_not_inherit_it(privileged):
    privileged(lambda: enter(ThreadSettings(scheduling="fifo")))
    assert privileged(lambda: os.sched_getscheduler(0)) & os.SCHED_RESET_ON_FORK


@pytest.mark.skipif(not has_slices(), reason="slices need Linux 6.12")
def test_auto_obtains_a_slice_without_privileges_and_says_why_not_fifo(unprivileged):
    obtained = unprivileged(lambda: enter(ThreadSettings(scheduling="auto", priority=7)))
    assert obtained.mode == SchedulingMode.SLICE
    assert "grant CAP_SYS_NICE" in obtained.reason
    assert "LimitRTPRIO=7" in obtained.reason


def test_fifo_demanded_without_privileges_is_a_fault_that_says_what_to_grant(unprivileged):
    with pytest.raises(TransmitError, match=r"SCHED_FIFO with priority 9 is not permitted: grant CAP_SYS_NICE .* or LimitRTPRIO=9"):
        unprivileged(lambda: enter(ThreadSettings(scheduling="fifo", priority=9)))


@pytest.mark.skipif(not has_slices(), reason="slices need Linux 6.12")
@pytest.mark.parametrize("slice_us", [100.0, 1000.0])
def test_a_slice_is_in_force_in_the_kernel(thread, slice_us):
    thread(lambda: enter(ThreadSettings(scheduling="slice", slice_us=slice_us)))

    def read_slice_ns():
        lines = Path("/proc/thread-self/sched").read_text(encoding="ascii").splitlines()
        return next((int(line.split(":")[1]) for line in lines if line.startswith("se.slice")), None)

    slice_ns = thread(read_slice_ns)
    if slice_ns is None:
        pytest.skip("this kernel does not show slices in /proc")
    assert slice_ns == slice_us * 1000


def test_plain_takes_a_thread_back_from_fifo(privileged):
    privileged(lambda: enter(ThreadSettings(scheduling="fifo")))
    assert privileged(lambda: enter(ThreadSettings(scheduling="plain"))).mode == SchedulingMode.PLAIN
    assert privileged(policy) == os.SCHED_OTHER


def test_another_thread_can_be_moved_by_its_id(privileged):
    privileged(lambda: enter(ThreadSettings(scheduling="fifo")))
    assert apply(ThreadSettings(scheduling="plain"), privileged(threading.get_native_id)).mode == SchedulingMode.PLAIN
    assert privileged(policy) == os.SCHED_OTHER


def test_a_thread_of_the_packet_path_gets_no_signals(thread):
    thread(lambda: enter(ThreadSettings(scheduling="plain")))
    blocked = thread(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, []))
    assert {signal.SIGTERM, signal.SIGINT, signal.SIGHUP} <= blocked
    assert not {signal.SIGTERM, signal.SIGINT, signal.SIGHUP} & signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_thread_stays_on_the_cpu_it_is_given(thread):
    cpu = max(os.sched_getaffinity(0))
    thread(lambda: enter(ThreadSettings(scheduling="plain", cpu=cpu)))
    assert thread(lambda: os.sched_getaffinity(0)) == {cpu}


def test_a_cpu_that_is_not_there_is_a_fault(thread):
    with pytest.raises(TransmitError, match=r"cpu must be one this process may use \(.*\), got 1023"):
        thread(lambda: enter(ThreadSettings(scheduling="plain", cpu=1023)))


@pytest.mark.parametrize(
    ("packet_rate_hz", "spin_us", "refused"), [(73_000, 0.0, False), (300_000, 0.0, True), (37_500, 50.0, True), (753.5, 50.0, False)]
)
def test_a_load_that_the_kernel_would_throttle_is_refused_to_fifo(packet_rate_hz, spin_us, refused):
    assert bool(fifo_refusal(packet_rate_hz, spin_us)) is refused


def test_memory_is_not_locked_under_a_limit_and_the_reason_is_reported(unprivileged):
    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY:
        pytest.skip("no limit of locked memory applies here")
    lock = unprivileged(lock_memory)
    assert not lock.locked
    assert "grant CAP_IPC_LOCK or LimitMEMLOCK=infinity" in lock.reason


def test_memory_is_locked_where_permitted():
    lock = lock_memory()
    try:
        if not lock.locked:
            pytest.skip(lock.reason)
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines())
        assert int(status["VmLck"].split()[0]) > 0
    finally:
        unlock_memory()


@pytest.mark.parametrize(
    ("asked_us", "packet_rate_hz", "real_time", "chosen_us"),
    [
        (-1.0, 900.0, True, 50.0),
        (-1.0, 1800.0, True, 50.0),
        (-1.0, 45_000.0, True, 0.0),
        (-1.0, 900.0, False, 0.0),
        (0.0, 900.0, True, 0.0),
        (20.0, 900.0, False, 20.0),
    ],
)
def test_a_spin_is_chosen_only_for_a_real_time_thread_with_few_packets(asked_us, packet_rate_hz, real_time, chosen_us):
    assert chosen_spin_us(asked_us, packet_rate_hz, real_time=real_time) == chosen_us
