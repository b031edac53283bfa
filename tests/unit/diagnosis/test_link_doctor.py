"""Listening at a port: pseudo-terminals and loopback, no wall-clock luck but that something is answered in time."""

import contextlib
import os
import socket
import threading
import tty

import pytest

from hilsim.cli.doctor import link_end
from hilsim.errors import ConfigError, LinkError
from hilsim.parts.vehicle.diagnosis import link as link_doctor
from hilsim.parts.vehicle.diagnosis.link import examine_link
from hilsim.transmit.links.line import NETWORK, Line, LineKind
from hilsim.transmit.links.serial_port import open_serial
from tests.mavlink import heartbeat_bytes, packer

ARMED = heartbeat_bytes(packer(1, 1), mode=113 | 128)


@pytest.fixture
def board():
    """A port whose other end answers the first bytes with what is given; None hangs up."""
    threads, ends = [], []

    def plug(answer):
        ours, theirs = os.openpty()
        tty.setraw(theirs)

        def respond():
            os.read(ours, 100)
            if answer is None:
                ends.remove(ours)
                os.close(ours)
            else:
                os.write(ours, answer)

        ends.extend((ours, theirs))  # theirs too: a master without a slave cannot be read
        device = os.ttyname(theirs)
        threads.append(threading.Thread(target=respond))
        threads[-1].start()
        return device

    yield plug
    for thread in threads:
        thread.join(10)
    for end in ends:
        os.close(end)


def examine(where, **more):
    return examine_link(link_end(where, 115_200), **{"is_uart": None, "seconds": 5.0} | more)


@pytest.mark.parametrize(("is_uart", "kind"), [(None, LineKind.USB), (True, LineKind.UART), (False, LineKind.USB)])
def test_a_device_is_opened_listened_to_and_closed(board, is_uart, kind, monkeypatch):
    device, opened = board(ARMED), []
    monkeypatch.setattr(link_doctor, "open_serial", lambda spec, **more: opened.append(open_serial(spec, **more)) or opened[-1])
    link, heard = examine(device, is_uart=is_uart)
    assert (link.path, link.device, link.line) == (device, device, Line(kind, 115_200))
    assert (heard.beat.base_mode, heard.received_bytes) == (241, len(ARMED))
    assert not opened[0].port.is_open


def test_a_path_may_be_relative_and_a_link(board, tmp_path, monkeypatch):
    (tmp_path / "board").symlink_to(board(ARMED))
    monkeypatch.chdir(tmp_path)
    link, _ = examine("board")
    assert (link.path, link.lasting_name) == (str(tmp_path / "board"),) * 2


def test_a_board_that_goes_away_is_a_fault(board):
    device = board(None)
    with pytest.raises(LinkError, match=f"{device}: the port must stay while it is examined, got .*: unplugged, or restarted"):
        examine(device)


def test_silence_ends():
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    with contextlib.ExitStack() as opened:
        opened.callback(os.close, ours)
        device = os.ttyname(theirs)
        os.close(theirs)
        _, heard = examine(device, seconds=0.2)
    assert (heard.beat, heard.received_bytes) == (None, 0)
    assert heard.waited_s >= 0.2


def test_a_simulation_is_let_in_and_heard():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def connect():
        for _ in range(500):
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=10) as px4:
                px4.sendall(ARMED)
                px4.recv(1)
                return

    thread = threading.Thread(target=connect)
    thread.start()
    link, heard = examine(f"tcp:127.0.0.1:{port}", seconds=10.0)
    thread.join(10)
    assert (link.line, link.path, link.device.split(":")[0]) == (NETWORK, f"tcp:127.0.0.1:{port}", "127.0.0.1")
    assert heard.beat.is_armed


def test_a_missing_simulation_is_reported_with_how_to_start_it():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(LinkError, match=rf"tcp port 127.0.0.1:{port}: PX4's simulation must connect within 0.1 s, got no connection: start it"):
        examine(f"tcp:127.0.0.1:{port}", seconds=0.1)


def test_a_port_that_another_simulator_listens_at_is_busy():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(LinkError, match=rf"tcp port 127.0.0.1:{port}: the port must be free"):
            examine(f"tcp:127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("where", "more", "fault"),
    [
        ("tcp:localhost", {}, r'--link tcp:localhost: the address must be like "tcp:127.0.0.1:4560"'),
        ("/dev/x", {"seconds": 0.0}, "--seconds: wait_s must be above 0 and at most 600, got 0"),
    ],
)
def test_an_impossible_port_is_refused(where, more, fault):
    with pytest.raises(ConfigError, match=fault):
        examine(where, **more)
