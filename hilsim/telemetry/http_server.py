"""HTTP/1.1 server with bounds: 64 connections, 8 KiB per line of a request's head, 64 lines, 5 s for the head."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from aiohttp import web

from hilsim.limits import REQUEST_HEADER_BYTES, REQUEST_S
from hilsim.telemetry.guard import BoundedConnections, ClientFaults
from hilsim.telemetry.metrics_port import BACKLOG

_LOGGER = logging.getLogger("hilsim.http")
_LOGGER.addFilter(ClientFaults())

_SHUTDOWN_TIMEOUT_S = 0.5  # an answer takes milliseconds; a client that does not read must not delay the stop
_LINGERING_S = 1.0
"""Longest time that the rest of a refused body is read and discarded, so that its sender can read the answer."""
_MOST_LINES = 64


@asynccontextmanager
async def served(app: web.Application, listening: socket.socket, held: Collection[asyncio.BaseProtocol] = ()) -> AsyncIterator[None]:
    """Serve an application while the block runs.

    Args:
        app: Application that answers requests; bodies reach it as they were sent, never decompressed.
        listening: Socket that listens.
        held: Connections that are never closed to make room for new ones.
    """
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=_LOGGER,
        handle_signals=False,
        shutdown_timeout=_SHUTDOWN_TIMEOUT_S,
        keepalive_timeout=REQUEST_S.bound,  # runs from the connection, and from each answer, until a whole head has arrived
        max_line_size=REQUEST_HEADER_BYTES.bound,
        max_field_size=REQUEST_HEADER_BYTES.bound,
        max_headers=_MOST_LINES,
        lingering_time=_LINGERING_S,
        auto_decompress=False,
    )
    await runner.setup()
    listener: asyncio.Server | None = None
    try:
        if runner.server is None:
            raise AssertionError("a runner that was set up has a server")
        connections = BoundedConnections(runner.server, held)
        listener = await asyncio.get_running_loop().create_server(connections, sock=listening, backlog=BACKLOG)
        yield
    finally:
        if listener is not None:
            listener.close()
        await runner.cleanup()
