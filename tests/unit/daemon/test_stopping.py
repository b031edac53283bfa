"""Why the daemon stops, with real signals from real processes."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hilsim.daemon.stopping import Stopping, signals_handled


async def reason_of(send):
    stopping = Stopping()
    with signals_handled({signal.SIGTERM: stopping.stop, signal.SIGINT: stopping.stop}):
        send()
        async with asyncio.timeout(10):
            await stopping.wait()
    return stopping.reason


def from_child(number):
    subprocess.run([sys.executable, "-c", f"import os; os.kill({os.getpid()}, {int(number)})"], check=True)


@pytest.mark.asyncio
async def test_a_signal_is_reported_with_the_process_and_user_who_sent_it():
    assert await reason_of(lambda: os.kill(os.getpid(), signal.SIGTERM)) == f"signal SIGTERM from pid {os.getpid()} ({comm()}), uid {os.getuid()}"


def comm():
    return Path("/proc/self/comm").read_text(encoding="utf-8").strip()


@pytest.mark.asyncio
async def test_a_sender_that_has_ended_is_reported_by_its_number():
    children = []

    def send():
        child = subprocess.Popen([sys.executable, "-c", f"import os; os.kill({os.getpid()}, {int(signal.SIGINT)})"])
        child.wait()
        children.append(child.pid)

    assert await reason_of(send) == f"signal SIGINT from pid {children[0]}, uid {os.getuid()}"


@pytest.mark.asyncio
async def test_a_signal_that_another_thread_takes_is_reported_too():
    ready, done = threading.Event(), threading.Event()

    def bear():
        ready.set()
        done.wait(10)

    bearer = threading.Thread(target=bear)
    bearer.start()
    ready.wait(10)
    try:
        reason = await reason_of(lambda: signal.pthread_kill(bearer.ident, signal.SIGTERM))
    finally:
        done.set()
        bearer.join()
    assert reason == f"signal SIGTERM from pid {os.getpid()} ({comm()}), uid {os.getuid()}"


@pytest.mark.asyncio
async def test_a_thousand_signals_while_python_is_busy_harm_nothing():
    stopping, told = Stopping(), []
    with signals_handled({signal.SIGUSR1: told.append, signal.SIGTERM: stopping.stop}):
        shooting = f"import os, signal\nfor _ in range(1000): os.kill({os.getpid()}, signal.SIGUSR1)\nos.kill({os.getpid()}, signal.SIGTERM)"
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", shooting)
        async with asyncio.timeout(20):
            await stopping.wait()
        await child.wait()
    assert told
    assert all(reason.startswith(f"signal SIGUSR1 from pid {child.pid}") for reason in told)


@pytest.mark.asyncio
async def test_a_signal_behind_a_thousand_others_is_not_lost_while_the_loop_stands_still():
    stopping, told = Stopping(), []
    with signals_handled({signal.SIGUSR1: told.append, signal.SIGTERM: stopping.stop}):
        for _ in range(1000):
            os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(20):
            await stopping.wait()
    assert told
    assert stopping.reason.startswith(f"signal SIGTERM from pid {os.getpid()}")


@pytest.mark.asyncio
async def test_afterwards_signals_do_what_they_did_before():
    with signals_handled({signal.SIGTERM: lambda _reason: None}):
        assert handled_signals() >> (signal.SIGTERM - 1) & 1
    assert not handled_signals() >> (signal.SIGTERM - 1) & 1


def handled_signals():
    """The kernel's own word for it."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("SigCgt:")).split()[1], 16)


@pytest.mark.asyncio
async def test_the_first_reason_counts():
    stopping = Stopping()
    assert (stopping.is_requested, stopping.reason) == (False, "")
    stopping.stop("duration elapsed")
    stopping.stop("every replay has ended")
    assert (stopping.is_requested, stopping.reason) == (True, "duration elapsed")


@pytest.mark.parametrize(
    ("error", "reason"),
    [(ValueError("lead must be above 0"), "exception ValueError: lead must be above 0"), (KeyboardInterrupt(), "exception KeyboardInterrupt")],
)
@pytest.mark.asyncio
async def test_an_exception_becomes_the_reason_and_is_raised_again(error, reason):
    stopping = Stopping()
    with pytest.raises(type(error)), stopping.naming_exceptions():
        raise error
    assert stopping.reason == reason


@pytest.mark.asyncio
async def test_an_exception_while_stopping_is_not_the_reason():
    stopping = Stopping()
    stopping.stop("duration elapsed")
    with pytest.raises(OSError, match="disk"), stopping.naming_exceptions():
        raise OSError("disk")
    assert stopping.reason == "duration elapsed"
