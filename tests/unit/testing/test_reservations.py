"""Ports and addresses of tests: apart from each other, free, and given back."""

import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from hilsim.errors import TransmitError
from hilsim.testing import reservations
from hilsim.testing.reservations import reserved_port, reserved_source


def test_ports_and_sources_differ_while_they_are_held():
    with ExitStack() as held:
        ports = [held.enter_context(reserved_port()) for _ in range(50)]
        sources = [held.enter_context(reserved_source()) for _ in range(50)]
        assert len(set(ports)) == len(set(sources)) == 50


def test_a_reserved_port_can_be_bound_by_the_program_under_test():
    with reserved_port() as port, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as driver:
        driver.bind(("0.0.0.0", port))  # noqa: S104 - as drivers do


@pytest.fixture
def one_port(monkeypatch):
    """There is one port to choose from."""
    with reserved_port() as port:
        pass
    monkeypatch.setattr(reservations, "_free_range", lambda: (port, port + 1))
    return port


def test_a_port_that_is_held_is_given_to_no_other_process(one_port):
    program = f"from hilsim.testing import reservations; reservations._free_range = lambda: ({one_port}, {one_port + 1})\nwith reservations.reserved_port() as port: print(port)"
    command = [sys.executable, "-c", program]
    with reserved_port() as port:
        assert port == one_port
        other = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert other.returncode == 1
        assert "a port for a test must be free on this host, got none in 200 tries" in other.stderr
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == f"{one_port}\n"


def test_a_port_that_a_program_has_bound_is_not_given(one_port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", one_port))
        with pytest.raises(TransmitError, match="a port for a test must be free on this host"), reserved_port():
            pass


@pytest.mark.parametrize(
    ("given_away", "chosen"),
    [("32768 60999", (20_000, 32_768)), ("10000 60000", (60_001, 65_535)), ("1024 65535", (20_000, 65_535)), ("", (20_000, 65_535))],
)
def test_ports_are_not_those_that_the_kernel_gives_away(monkeypatch, tmp_path, given_away, chosen):
    path = tmp_path / "range"
    path.write_text(given_away)
    monkeypatch.setattr(reservations, "_RANGE", path)
    assert reservations._free_range() == chosen
