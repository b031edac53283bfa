"""Sockets of links: TCP ports that accept connections, and UDP ports."""

import errno
import os
import socket

from hilsim.errors import LinkError
from hilsim.transmit.links.port_owners import socket_holder


def listen_tcp(address: str, port: int) -> socket.socket:
    """Open a listening socket, non-blocking; port 0 for any free one.

    Raises:
        LinkError: the port is in use by another program, or the address is not this host's.
    """
    return _bound(socket.SOCK_STREAM, address, port)


def open_udp(address: str, port: int) -> socket.socket:
    """Open a bound UDP socket, non-blocking; port 0 for any free one.

    Raises:
        LinkError: the port is in use by another program, or the address is not this host's.
    """
    return _bound(socket.SOCK_DGRAM, address, port)


def accept_connection(listener: socket.socket) -> socket.socket | None:
    """Accept a pending connection, non-blocking and without delay; None if there is none."""
    try:
        accepted, _ = listener.accept()
    except (BlockingIOError, ConnectionAbortedError, InterruptedError):
        return None
    accepted.settimeout(0)
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return accepted


def _bound(kind: socket.SocketKind, address: str, port: int) -> socket.socket:
    opened = socket.socket(socket.AF_INET, kind)
    try:
        if kind == socket.SOCK_STREAM:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # lingering connections do not block the port
        opened.settimeout(0)
        opened.bind((address, port))
        if kind == socket.SOCK_STREAM:
            opened.listen()
    except OSError as error:
        opened.close()
        raise _fault(kind, address, port, error) from error
    return opened


def _fault(kind: socket.SocketKind, address: str, port: int, error: OSError) -> LinkError:
    protocol = "tcp" if kind == socket.SOCK_STREAM else "udp"
    number = error.errno or 0
    if number == errno.EADDRINUSE:
        holder = socket_holder(protocol, port) or "another program (ss -lpn shows which)"
        return LinkError(f"{protocol} port {address}:{port}: the port must be free, got it in use by {holder}: end it, or use another port")
    reason = os.strerror(number) if number else str(error)
    advice = {errno.EADDRNOTAVAIL: ": use an address of this host (ip address)", errno.EACCES: ": use a port from 1024 on"}.get(number, "")
    return LinkError(f"{protocol} port {address}:{port}: the port must open, got {reason}{advice}")
