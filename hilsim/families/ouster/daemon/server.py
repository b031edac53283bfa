"""HTTP server of an Ouster, around ``families.ouster.interface.http``."""

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from aiohttp import hdrs, web

from hilsim.daemon.interfaces.http_guard import HttpGuard
from hilsim.families.ouster.daemon.sensor import OusterSensor
from hilsim.families.ouster.interface.answers import NOTHING, Answer, refusal
from hilsim.families.ouster.interface.http import Request
from hilsim.limits import SENSOR_BODY_BYTES
from hilsim.telemetry.http_server import read_body, served

_SERVER = "nginx"  # as a real unit names it


@asynccontextmanager
async def serve_http(sensor: OusterSensor, listening: socket.socket) -> AsyncIterator[None]:
    """Answer requests to a sensor, at a socket that listens at its address, while the block runs."""
    address, port, *_ = listening.getsockname()
    async with served(HttpServer(sensor, address, port).app(), listening, answers=sensor.answers):
        yield


class HttpServer:
    """Server of one sensor."""

    def __init__(self, sensor: OusterSensor, address: str, port: int) -> None:
        """Create a server for clients that use this address, or the sensor's name, as host."""
        self._sensor = sensor
        name = f"os-{sensor.state.unit.serial}"
        self._guard = HttpGuard(address, port, name, f"{name}.local")

    def app(self) -> web.Application:
        """Web application of the server."""
        app = web.Application(client_max_size=SENSOR_BODY_BYTES.bound)
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        fault = self._guard.fault(request)
        if fault is not None:
            return _response(refusal(*fault))
        try:
            body = await read_body(request)
        except web.HTTPRequestEntityTooLarge:
            reason = f"body must be at most {SENSOR_BODY_BYTES.text}, got more"
            return _response(refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason))
        except web.HTTPException as error:
            return _response(refusal(HTTPStatus(error.status), (error.text or "").strip()))
        asked = Request(method=request.method, path=request.path, query=dict(request.query), body=body, peer=request.remote or "")
        return _response(await self._sensor.request(asked))


def _response(answer: Answer) -> web.Response:
    headers = {hdrs.SERVER: _SERVER}
    if answer.document is NOTHING:
        return web.Response(status=answer.status, headers=headers)
    return web.Response(status=answer.status, text=json.dumps(answer.document), content_type="application/json", headers=headers)
