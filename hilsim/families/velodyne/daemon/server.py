"""Server of a sensor's web interface: the documents and forms of ``families.velodyne.protocol.web_interface``, and a page that shows and sets the same."""

import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

import structlog
from aiohttp import web

from hilsim.daemon.interfaces.http_guard import HttpGuard
from hilsim.errors import HilsimError
from hilsim.families.velodyne.daemon.sensor import WebSensor
from hilsim.families.velodyne.protocol.web_interface import FORM_PATHS
from hilsim.limits import SENSOR_FORM_BYTES
from hilsim.telemetry.http_server import read_body, served

log = structlog.get_logger("hilsim")

_MAX_KEYS = 32
_DOCUMENTS = {
    "/cgi/info.json": "info",
    "/cgi/settings.json": "settings",
    "/cgi/status.json": "status",
    "/cgi/diag.json": "diag",
    "/cgi/snapshot.hdl": "snapshot",
}
_NO_CONTENT = 204  # the manual's Python example
_PAGE_HEADERS = {"Content-Security-Policy": "default-src 'self' 'unsafe-inline'", "X-Content-Type-Options": "nosniff"}


@asynccontextmanager
async def serve_sensor(sensor: WebSensor, listening: socket.socket) -> AsyncIterator[None]:
    """Answer requests to a sensor, at a socket that listens at its address, while the block runs."""
    address, port, *_ = listening.getsockname()
    try:
        async with served(SensorServer(sensor, address, port).app(), listening, answers=sensor.answers):
            yield
    finally:
        await sensor.close()


class SensorServer:
    """Server of one sensor."""

    def __init__(self, sensor: WebSensor, address: str, port: int) -> None:
        """Create a server for clients that use this address and port as its name."""
        self._sensor = sensor
        self._guard = HttpGuard(address, port)
        self._page = (files("hilsim.families.velodyne.daemon") / "page.html").read_text(encoding="utf-8")

    def app(self) -> web.Application:
        """Web application of the server."""

        @web.middleware
        async def admit(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
            fault = self._guard.fault(request)
            if fault is not None:
                return web.Response(status=fault.status, text=f"{fault.reason}\n")
            answer: web.StreamResponse = await handler(request)
            return answer

        app = web.Application(middlewares=[admit], client_max_size=SENSOR_FORM_BYTES.bound)
        app.add_routes([web.get(path, self._document) for path in _DOCUMENTS])
        app.add_routes([web.post(f"/cgi/setting{path}", self._form) for path in FORM_PATHS])
        app.add_routes([web.post("/cgi/save", self._save), web.post("/cgi/reset", self._reset), web.get("/", self._show)])
        return app

    async def _document(self, request: web.Request) -> web.Response:
        text = json.dumps(self._sensor.document(_DOCUMENTS[request.path]))
        return web.Response(text=text, content_type="application/json", headers={"Cache-Control": "no-store"})

    async def _show(self, request: web.Request) -> web.Response:
        del request
        return web.Response(text=self._page, content_type="text/html", headers=_PAGE_HEADERS)

    async def _keys(self, request: web.Request, *, strict: bool = True) -> list[tuple[str, str]]:
        """Keys and values of a form; a word without ``=`` is a key without a value, or an error where ``strict``.

        Raises:
            HTTPException: the body is too long, too slow or not whole.
            ValueError: it is no form.
        """
        body = await read_body(request)
        return parse_qsl(body.decode("utf-8"), keep_blank_values=True, strict_parsing=strict and bool(body), max_num_fields=_MAX_KEYS)

    async def _form(self, request: web.Request) -> web.Response:
        path = request.path.removeprefix("/cgi/setting")
        try:
            await self._sensor.submit(path, await self._keys(request))
        except (ValueError, HilsimError) as error:
            return web.Response(status=400, text=f"{error}\n")
        return web.Response(status=_NO_CONTENT)

    async def _save(self, request: web.Request) -> web.Response:
        await read_body(request)
        try:
            await self._sensor.save()
        except HilsimError as error:
            log.warning("sensor.web.not_saved", reason=str(error))
            return web.Response(status=500, text=f"{error}\n")
        return web.Response(status=_NO_CONTENT)

    async def _reset(self, request: web.Request) -> web.Response:
        try:
            keys = await self._keys(request, strict=False)  # clients send data=reset_system, or that word alone
        except ValueError as error:
            return web.Response(status=400, text=f"{error}\n")
        if "reset_system" not in {word for pair in keys for word in pair}:
            return web.Response(status=400, text="data must be reset_system\n")
        await self._sensor.reset()
        return web.Response(status=_NO_CONTENT)
