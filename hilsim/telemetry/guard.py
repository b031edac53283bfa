"""Protection of the HTTP server against exhaustion and strangers: a bound on connections, and a check of each request's host.

A web page can reach a server on the bench through its reader's browser: it lets a name of its own resolve to 127.0.0.1 (DNS rebinding), and reads
the answers as its own. Its requests then have that name as ``Host``. So a request must be addressed to an IP address, to ``localhost``, to this host's
name, or to a name from the rig.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Collection, Iterable
from ipaddress import ip_address
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from hilsim.limits import CONNECTIONS

HELD_S = 10.0
"""When all connections have a whole request, one older than this is closed for a new one."""


def is_addressed_here(host: str, names: Iterable[str]) -> bool:
    """Whether a request with this ``Host`` may be answered; ``names`` are those from the rig."""
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
    """Passes aiohttp's records of internal errors; a malformed request is answered by status 400 and not logged."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log a record."""
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


class BoundedConnections:
    """Maker of the protocol of each connection, with a bounded number of simultaneous connections.

    When all are in use, the oldest one without a whole request is closed for a new one, so that a client that sends its request at once is served whatever
    number of others only hold connections.
    """

    def __init__(self, held: Collection[asyncio.BaseProtocol] = ()) -> None:
        """Bound the connections of a server; those in ``held`` are never closed for a new one."""
        self._held = held
        self._requests: dict[asyncio.BaseProtocol, web.Request] = {}
        self._begun_s: dict[asyncio.BaseProtocol, float] = {}
        self._coming: set[asyncio.BaseProtocol] = set()

    def of(self, server: web.Server | None) -> Callable[[], asyncio.BaseProtocol]:
        """The maker for a server."""
        if server is None:
            raise AssertionError("a runner that was set up has a server")
        return lambda: self._protocol(server)

    def middleware(self) -> Any:
        """Middleware of the server's application, by which it is known which connections have requests."""

        @web.middleware
        async def noted(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
            self._requests[request.protocol] = request
            try:
                answer: web.StreamResponse = await handler(request)
            finally:
                self._requests.pop(request.protocol, None)
            return answer

        return noted

    def _has_request(self, connection: asyncio.BaseProtocol) -> bool:
        request = self._requests.get(connection)
        return request is not None and request.content.is_eof()

    def _protocol(self, server: web.Server) -> asyncio.BaseProtocol:
        """Protocol of a new connection, which is closed at once if there is no room."""
        now_s = time.monotonic()
        there = self._coming.union(server.connections)
        self._begun_s = {connection: begun_s for connection, begun_s in self._begun_s.items() if connection in there}
        if len(there) >= CONNECTIONS.bound:
            closable = [connection for connection in server.connections if connection not in self._held]
            waiting = [connection for connection in closable if not self._has_request(connection)]
            oldest = min(waiting or closable, key=lambda connection: self._begun_s.get(connection, now_s), default=None)
            if oldest is None or (not waiting and now_s - self._begun_s.get(oldest, now_s) < HELD_S):
                return _Refused()
            oldest.force_close()
        connection = server()
        self._begun_s[connection] = now_s
        self._coming.add(connection)
        asyncio.get_running_loop().call_soon(self._coming.discard, connection)  # before asyncio reports the connection to it and to the server
        return connection


class _Refused(asyncio.Protocol):
    """Protocol of a connection beyond the bound."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close the connection with a short answer."""
        if isinstance(transport, asyncio.Transport):
            transport.write(b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        transport.close()
