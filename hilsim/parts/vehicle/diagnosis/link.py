"""Probing of a flight controller at its port: open it, exchange frames by ``probe``, close it; no flight."""

import contextlib
import errno
import os
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hilsim.errors import ConfigError, LinkError
from hilsim.parts.vehicle.diagnosis.probe import Probe, ProbeSpec
from hilsim.parts.vehicle.diagnosis.probe_result import Link, ProbeResult
from hilsim.transmit.links.addresses import host_and_port, is_address
from hilsim.transmit.links.line import NETWORK, SerialSpec
from hilsim.transmit.links.serial_port import open_serial
from hilsim.transmit.links.sockets import accept_connection, listen_tcp
from hilsim.units import NS_PER_S

_CHUNK = 1 << 16
_POLL_MS = 5
_POLL_S = 0.02


def examine_link(end: SerialSpec | str, *, is_uart: bool | None, seconds: float) -> tuple[Link, ProbeResult]:
    """Listen at a port.

    Args:
        end: Serial port, or an address ``a.b.c.d:port`` to wait there for PX4's simulator link.
        is_uart: Whether it is a true UART; None to detect it from the device.
        seconds: Timeout for a heartbeat, and duration of listening after it.

    Raises:
        ConfigError: the port or a number is invalid.
        LinkError: the port cannot be opened, or was disconnected.
    """
    try:
        probe = Probe(ProbeSpec(wait_s=seconds, listen_s=seconds, asks=isinstance(end, SerialSpec)))
    except ValueError as error:
        raise ConfigError(f"--seconds: {error}") from error
    probe.prepare()
    with _plugged_in(end, is_uart=is_uart) if isinstance(end, SerialSpec) else _connected(end, seconds) as (descriptor, link):
        return link, _converse(probe, descriptor, link.path)


@contextmanager
def _plugged_in(spec: SerialSpec, *, is_uart: bool | None) -> Iterator[tuple[int, Link]]:
    port = open_serial(spec, is_uart=is_uart)
    try:
        yield port.descriptor, Link(path=spec.port, device=port.device, lasting_name=port.name, line=port.line)
    finally:
        port.close()


@contextmanager
def _connected(address: str, seconds: float) -> Iterator[tuple[int, Link]]:
    """PX4's simulator link: the controller connects here, and retries until it is accepted."""
    if not is_address(address):
        raise ConfigError(f'--link tcp:{address}: the address must be like "tcp:127.0.0.1:4560"')
    with listen_tcp(*host_and_port(address)) as listener:
        connection = _awaited(listener, address, seconds)
    with connection:
        peer = "{}:{}".format(*connection.getpeername())
        yield connection.fileno(), Link(path=f"tcp:{address}", device=peer, lasting_name=f"tcp:{address}", line=NETWORK)


def _awaited(listener: socket.socket, address: str, seconds: float) -> socket.socket:
    end_ns = time.monotonic_ns() + round(seconds * NS_PER_S)
    while (connection := accept_connection(listener)) is None:
        if time.monotonic_ns() >= end_ns:
            raise LinkError(
                f"tcp port {address}: PX4's simulation must connect within {seconds:g} s, got no connection: start it for an external simulator "
                "(make px4_sitl none_iris), with this host as the simulator's (PX4_SIM_HOSTNAME)"
            )
        time.sleep(_POLL_S)
    return connection


def _converse(probe: Probe, descriptor: int, where: str) -> ProbeResult:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    begun_ns = time.monotonic_ns()
    rest = b""
    while True:
        now_ns = time.monotonic_ns() - begun_ns
        if probe.is_over(now_ns):
            return probe.result(now_ns)
        try:
            rest += probe.advance(now_ns)
            with contextlib.suppress(BlockingIOError):
                rest = rest[os.write(descriptor, rest) :] if rest else b""
            if poller.poll(_POLL_MS):
                probe.receive(_read(descriptor), time.monotonic_ns() - begun_ns)
        except OSError as error:
            raise LinkError(f"{where}: the port must stay while it is examined, got {error.strerror}: unplugged, or restarted") from error


def _read(descriptor: int) -> bytes:
    """Available bytes; the end of a stream is an error."""
    try:
        data = os.read(descriptor, _CHUNK)
    except BlockingIOError:
        return b""
    if not data:
        raise ConnectionResetError(errno.ECONNRESET, "its other end closed")
    return data
