"""HTTP server for scrapes and health checks, on the daemon's event loop; a worker thread does the work of a scrape.

- ``/metrics``: OpenMetrics or the plain text format, by the Accept header.
- ``/healthz``: level and faults as JSON; 200 while healthy or degraded, 503 when unhealthy. ``/healthz?verbose``: with the counters of the last minute, now and at the latest faults.
- ``/``: a page with links to the other two.

A client has 5 s to send the head of its request, with at most 8 KiB per line and 64 lines; at most 64 connections at a time.
"""

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from prometheus_client.exposition import choose_encoder

from hilsim.config.tables.metrics import MetricsServerSpec
from hilsim.telemetry.answers import health_answer
from hilsim.telemetry.collector import build_registry
from hilsim.telemetry.faults import Level
from hilsim.telemetry.guard import is_addressed_here
from hilsim.telemetry.http_server import served
from hilsim.telemetry.metrics_port import listen
from hilsim.telemetry.readings import MetricsSource

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>hilsim</title></head>
<body><h1>hilsim</h1><ul><li><a href="/metrics">/metrics</a></li><li><a href="/healthz">/healthz</a></li></ul></body></html>
"""

_VERSION = re.compile(r"\s*version=[0-9]{1,4}(\.[0-9]{1,4}){0,2}\s*")

Detail = Callable[[], dict[str, Any]]
"""Further content of ``/healthz?verbose``."""


@asynccontextmanager
async def serve_metrics(
    source: MetricsSource, spec: MetricsServerSpec, detail: Detail = dict, *, port: socket.socket | None = None
) -> AsyncIterator[tuple[str, int]]:
    """Serve while the block runs; yields the bound address and port. Leaving the block closes everything.

    Args:
        source: Source of the reading at each scrape.
        spec: Address and permitted host names.
        detail: Further content of ``/healthz?verbose``.
        port: Socket of ``metrics_port.listen``, if already open.

    Raises:
        TransmitError: the address cannot be bound, because it is in use or not local.
    """
    with port or listen(spec) as listening:
        async with served(build_app(source, spec, detail), listening):
            host, number, *_ = listening.getsockname()
            yield host, number


def build_app(source: MetricsSource, spec: MetricsServerSpec, detail: Detail = dict) -> web.Application:
    """The three pages, reading from ``source``."""
    registry = build_registry(source)

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(_sound_accept(request.headers.get("Accept", "")))
        # The text of 50 sensors takes some ten milliseconds: too long for the loop that feeds the watchdog.
        body = await asyncio.to_thread(encode, registry)
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def healthz(request: web.Request) -> web.Response:
        reading = await asyncio.to_thread(source)
        answer = health_answer(reading, time.monotonic_ns()) | (detail() if "verbose" in request.query else {})
        return web.json_response(answer, status=503 if reading.level is Level.UNHEALTHY else 200)

    async def index(_: web.Request) -> web.Response:
        return web.Response(text=_PAGE, content_type="text/html")

    @web.middleware
    async def addressed(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        host = request.headers.get("Host", "")
        if host and not is_addressed_here(host, spec.names):
            shown = host.encode(errors="backslashreplace").decode()  # a text that is not UTF-8 cannot be sent back
            text = f'Host must be an IP address, localhost, this host\'s name or one of [metrics] names, got "{shown}"\n'
            return web.Response(status=403, text=text)
        answer: web.StreamResponse = await handler(request)
        return answer

    app = web.Application(middlewares=[addressed])
    app.add_routes([web.get("/", index), web.get("/metrics", metrics), web.get("/healthz", healthz)])
    return app


def _sound_accept(accept: str) -> str:
    """Media types of an Accept header whose version, if any, is a number: prometheus_client compares its value with numbers."""
    sound = []
    for media in accept.split(","):
        versions = [part for part in media.split(";")[1:] if part.strip().startswith("version=")]
        if all(_VERSION.fullmatch(part) for part in versions):
            sound.append(media)
    return ",".join(sound)
