"""TCP servers of a Hesai: PTC, and HTTP around ``families.hesai.interface.cgi``."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from aiohttp import web

from hilsim.daemon.interfaces.connections import Exchange, serve_connections
from hilsim.daemon.interfaces.http_guard import HttpGuard
from hilsim.families.hesai.daemon.sensor import HesaiSensor
from hilsim.families.hesai.interface.cgi import PATH, document_of
from hilsim.families.hesai.protocol.ptc import HEAD_SIZE, Request, read_head
from hilsim.limits import REQUEST_S, SENSOR_FRAME_BYTES
from hilsim.telemetry.http_server import served


def serve_ptc(sensor: HesaiSensor, listening: socket.socket) -> AbstractAsyncContextManager[None]:
    """Answer requests by PTC, at a socket that listens at the sensor's address, while the block runs.

    Clients keep a connection without a request until they end, so none is closed for that: the kernel finds those that are gone.
    """
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # connections inherit it, and the next one
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
    exchange = Exchange(read=_read, answer=sensor.request, fault=lambda _: b"", answers=sensor.answers, idle_s=None)
    return serve_connections(exchange, listening, longest=SENSOR_FRAME_BYTES.bound)


async def _read(reader: asyncio.StreamReader) -> Request:
    head = await reader.readexactly(1)
    async with asyncio.timeout(REQUEST_S.bound):
        command, length = read_head(head + await reader.readexactly(HEAD_SIZE - 1))
        if not SENSOR_FRAME_BYTES.holds(length):
            raise ValueError(f"a payload must be at most {SENSOR_FRAME_BYTES.text}, got {length} bytes")
        return Request(command, await reader.readexactly(length))


@asynccontextmanager
async def serve_http(sensor: HesaiSensor, listening: socket.socket) -> AsyncIterator[None]:
    """Answer requests by HTTP, at a socket that listens at the sensor's address, while the block runs."""
    guard = HttpGuard(*listening.getsockname()[:2])

    async def answer(request: web.Request) -> web.Response:
        fault = guard.fault(request)
        if fault is not None:
            return web.Response(status=fault.status, text=json.dumps(document_of(fault.status, fault.reason)), content_type="application/json")
        return web.Response(text=json.dumps(await sensor.page(request.query)), content_type="application/json")

    app = web.Application()
    app.router.add_get(PATH, answer)
    async with served(app, listening, answers=sensor.answers):
        yield
