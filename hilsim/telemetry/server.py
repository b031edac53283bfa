"""Answers scrapes and health checks over HTTP, on the daemon's event loop; the work of a scrape is done in a worker thread.

- ``/metrics``: OpenMetrics or the plain text format, by the Accept header.
- ``/healthz``: 200, or 503 with the faults, as JSON.
- ``/``: a page that says where the other two are.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client.exposition import choose_encoder

from hilsim.errors import TransmitError
from hilsim.telemetry.collector import build_registry
from hilsim.telemetry.readings import MetricsSource
from hilsim.telemetry.specs import MetricsServerSpec

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>hilsim</title></head>
<body><h1>hilsim</h1><ul><li><a href="/metrics">/metrics</a></li><li><a href="/healthz">/healthz</a></li></ul></body></html>
"""

_SHUTDOWN_TIMEOUT_S = 0.5  # an answer takes milliseconds; a client that does not read must not hold the stop


@asynccontextmanager
async def serve_metrics(source: MetricsSource, spec: MetricsServerSpec) -> AsyncIterator[tuple[str, int]]:
    """Serve until the block is left; yields the address and port actually bound. Nothing of it outlives the block.

    Raises:
        TransmitError: the address cannot be had, because it is in use, not local, or not an address.
    """
    runner = web.AppRunner(build_app(source), access_log=None, handle_signals=False, shutdown_timeout=_SHUTDOWN_TIMEOUT_S)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, spec.address, spec.port).start()
        except OSError as error:
            message = f"metrics address must be free and local, got {spec.address}:{spec.port}: {_reason(error)}"
            raise TransmitError(message) from error
        host, port, *_ = runner.addresses[0]
        yield host, port
    finally:
        await runner.cleanup()


def build_app(source: MetricsSource) -> web.Application:
    """The three pages, reading from ``source``."""
    registry = build_registry(source)

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        # 50 sensors are some ten milliseconds of text: too long for the loop that feeds the watchdog.
        body = await asyncio.to_thread(encode, registry)
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def healthz(_: web.Request) -> web.Response:
        faults = (await asyncio.to_thread(source)).faults
        answer = {"healthy": not faults, "faults": faults}
        return web.json_response(answer, status=503 if faults else 200)

    async def index(_: web.Request) -> web.Response:
        return web.Response(text=_PAGE, content_type="text/html")

    app = web.Application()
    app.add_routes([web.get("/", index), web.get("/metrics", metrics), web.get("/healthz", healthz)])
    return app


def _reason(error: OSError) -> str:
    """The system's own words: asyncio wraps them in a sentence of its own for EADDRINUSE."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
