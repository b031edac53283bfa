"""What keeps the HTTP server from being held, or read by a stranger: a bound on connections, and whom requests may be addressed to.

A web page may reach a server on the bench through its reader's browser: it lets a name of its own point to 127.0.0.1 (DNS rebinding), and reads what answers as its own. Its requests
then bear that name as ``Host``. So a request must be addressed to an IP address, to ``localhost``, to this host's name, or to a name from the rig.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Iterable
from ipaddress import ip_address

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from hilsim.limits import CONNECTIONS

HELD_S = 10.0
"""When all connections are taken, one that is older than this gives way."""


def is_addressed_here(host: str, names: Iterable[str]) -> bool:
    """Whether the ``Host`` of a request may be answered; ``names`` are those from the rig."""
    name = _without_port(host).lower().rstrip(".")
    if name in {"localhost", socket.gethostname().lower(), *(known.lower() for known in names)}:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host


class ClientFaults(logging.Filter):
    """Passes aiohttp's records of our own faults; a malformed request is answered by status 400 and not logged."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is to be logged."""
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


class BoundedConnections:
    """Makes the protocol of each connection; a bounded number at a time."""

    def __init__(self, server: web.Server) -> None:
        """Of connections that ``server`` serves."""
        self._server = server
        self._begun_s: dict[asyncio.BaseProtocol, float] = {}
        self._coming: set[asyncio.BaseProtocol] = set()

    def __call__(self) -> asyncio.BaseProtocol:
        """For one more connection, which is closed at once where there is no room."""
        now_s = time.monotonic()
        there = self._coming.union(self._server.connections)
        self._begun_s = {connection: begun_s for connection, begun_s in self._begun_s.items() if connection in there}
        if len(there) >= CONNECTIONS.bound:
            oldest = min(self._server.connections, key=lambda connection: self._begun_s.get(connection, now_s), default=None)
            if oldest is None or now_s - self._begun_s.get(oldest, now_s) < HELD_S:
                return _Refused()
            oldest.force_close()
        connection = self._server()
        self._begun_s[connection] = now_s
        self._coming.add(connection)
        asyncio.get_running_loop().call_soon(self._coming.discard, connection)  # right before asyncio reports its connection to it and to the server
        return connection


class _Refused(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it, with a word."""
        if isinstance(transport, asyncio.Transport):
            transport.write(b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        transport.close()
