"""HTTP/1.1 server with bounds: 64 connections, 8 KiB per line of a request's head, 64 lines, 5 s for the head and 5 s for the body."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from hilsim.limits import REQUEST_HEADER_BYTES, REQUEST_S
from hilsim.telemetry.guard import BoundedConnections, ClientFaults
from hilsim.telemetry.metrics_port import BACKLOG

_LOGGER = logging.getLogger("hilsim.http")
_LOGGER.addFilter(ClientFaults())

_SHUTDOWN_TIMEOUT_S = 0.5  # an answer takes milliseconds; a client that does not read must not delay the stop
_LINGERING_S = 1.0
"""Longest time that the rest of a refused body is read and discarded, so that its sender can read the answer."""
_MAX_LINES = 64


@asynccontextmanager
async def served(
    app: web.Application, listening: socket.socket, held: Collection[asyncio.BaseProtocol] = (), *, answers: Callable[[], bool] | None = None
) -> AsyncIterator[None]:
    """Serve an application while the block runs.

    Args:
        app: Application that answers requests; bodies reach it as they were sent, never decompressed.
        listening: Socket that listens.
        held: Connections that are never closed to make room for new ones.
        answers: Whether requests are answered now; while they are not, connections are closed.
    """
    connections = BoundedConnections(held)
    if answers is not None:
        app.middlewares.insert(0, _answering(answers))
    app.middlewares.insert(0, connections.middleware())
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=_LOGGER,
        handle_signals=False,
        shutdown_timeout=_SHUTDOWN_TIMEOUT_S,
        keepalive_timeout=REQUEST_S.bound,  # runs from the connection, and from each answer, until a whole head has arrived
        max_line_size=REQUEST_HEADER_BYTES.bound,
        max_field_size=REQUEST_HEADER_BYTES.bound,
        max_headers=_MAX_LINES,
        lingering_time=_LINGERING_S,
        auto_decompress=False,
    )
    await runner.setup()
    listener: asyncio.Server | None = None
    try:
        listener = await asyncio.get_running_loop().create_server(connections.of(runner.server), sock=listening, backlog=BACKLOG)
        yield
    finally:
        if listener is not None:
            listener.close()
        await runner.cleanup()


def _answering(answers: Callable[[], bool]) -> Middleware:
    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not answers() and request.transport is not None:
            request.transport.abort()
        return await handler(request)

    return answer


async def read_body(request: web.Request) -> bytes:
    """Wait for the body of a request.

    Raises:
        HTTPBadRequest: the body ends before its length.
        HTTPRequestEntityTooLarge: it is longer than the application allows.
        HTTPRequestTimeout: it does not arrive in time.
    """
    try:
        async with asyncio.timeout(REQUEST_S.bound):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(text=f"a request must arrive within {REQUEST_S.text}\n") from None
    except (web.RequestPayloadError, ConnectionError):
        _LOGGER.debug("a body ended before its length, from %s", request.remote)
        raise web.HTTPBadRequest(text="a body must be as long as its head says, and be HTTP\n") from None
