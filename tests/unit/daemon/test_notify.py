"""What systemd would receive, read from a real AF_UNIX datagram socket."""

import os
import socket
import time

import pytest

from hilsim.daemon.notify import ServiceManager, watchdog_interval_s


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    """A listening service manager: (socket, ServiceManager), by a path and by an abstract address."""
    address = str(tmp_path / "notify") if request.param == "path" else f"@hilsim-test-{os.getpid()}-{time.monotonic_ns()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(address.replace("@", "\0", 1))
        listener.settimeout(60)
        yield listener, ServiceManager.from_environment({"NOTIFY_SOCKET": address})


def test_ready_carries_the_status_in_the_same_datagram(manager):
    listener, service_manager = manager
    assert service_manager.ready("2 sensors, 1507 packets/s")
    assert listener.recv(4096) == b"READY=1\nSTATUS=2 sensors, 1507 packets/s"


def test_status_of_several_lines_becomes_one_assignment(manager):
    listener, service_manager = manager
    service_manager.status("late\nREADY=1")
    assert listener.recv(4096) == b"STATUS=late READY=1"


def test_watchdog_and_stopping_are_reported_in_systemds_words(manager):
    listener, service_manager = manager
    service_manager.watchdog()
    service_manager.stopping("bye")
    assert [listener.recv(4096), listener.recv(4096)] == [b"WATCHDOG=1", b"STOPPING=1\nSTATUS=bye"]


def test_reloading_is_stamped_with_the_monotonic_clock(manager):
    listener, service_manager = manager
    before_us = time.monotonic_ns() // 1000
    service_manager.reloading()
    after_us = time.monotonic_ns() // 1000
    state, stamp = listener.recv(4096).decode().split("\n")
    assert state == "RELOADING=1"
    assert before_us <= int(stamp.removeprefix("MONOTONIC_USEC=")) <= after_us


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1234"}])
def test_nothing_is_sent_where_no_manager_listens(environment):
    assert not ServiceManager.from_environment(environment).ready("up")


def test_a_manager_that_went_away_is_no_fault(tmp_path):
    assert not ServiceManager(address=str(tmp_path / "gone")).watchdog()


def test_watchdog_is_fed_twice_within_its_limit():
    assert watchdog_interval_s({"WATCHDOG_USEC": "5000000", "WATCHDOG_PID": str(os.getpid())}) == 2.5


def test_watchdog_without_a_pid_is_meant_for_this_process():
    assert watchdog_interval_s({"WATCHDOG_USEC": "5000000"}) == 2.5


@pytest.mark.parametrize(
    "environment",
    [{}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "5000000", "WATCHDOG_PID": str(os.getpid() + 1)}],
)
def test_no_watchdog_is_fed_when_none_was_asked_of_this_process(environment):
    assert watchdog_interval_s(environment) is None
