"""HTTP server of an Ouster, around ``families.ouster.interface.http``.

Requests of clients that use the port as a proxy (``GET http://10.0.0.2/api/v1/...``) are answered as well: so an ordinary user, who may not open port 80, can
point ``http_proxy`` at another one. A page of another server could send requests through a browser, so a request must have this sensor as host and must not
have another ``Origin``; a real sensor checks neither, and clients that are no browsers do not notice.
"""

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from aiohttp import hdrs, web

from hilsim.families.ouster.daemon.sensor import OusterSensor
from hilsim.families.ouster.interface.answers import NOTHING, Answer, refusal
from hilsim.families.ouster.interface.http import Request
from hilsim.limits import CONTROL_REQUESTS_A_SECOND, SENSOR_BODY_BYTES
from hilsim.telemetry.allowance import Allowance
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
        names = (address, f"os-{sensor.state.unit.serial}", f"os-{sensor.state.unit.serial}.local")
        self._hosts = {host for name in names for host in (name, f"{name}:{port}")}
        self._origins = {f"http://{host}" for host in self._hosts}
        self._allowance = Allowance(most=CONTROL_REQUESTS_A_SECOND.bound)

    def app(self) -> web.Application:
        """Web application of the server."""
        app = web.Application(client_max_size=SENSOR_BODY_BYTES.bound)
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        refused = self._refusal(request)
        if refused is not None:
            return _response(refused)
        try:
            body = await read_body(request)
        except web.HTTPRequestEntityTooLarge:
            reason = f"body must be at most {SENSOR_BODY_BYTES.text}, got more"
            return _response(refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason))
        except web.HTTPException as fault:
            return _response(refusal(HTTPStatus(fault.status), (fault.text or "").strip()))
        asked = Request(method=request.method, path=request.path, query=dict(request.query), body=body, peer=request.remote or "")
        return _response(await self._sensor.request(asked))

    def _refusal(self, request: web.Request) -> Answer | None:
        # The authority of a target in absolute form replaces Host (RFC 9112, 3.2.2).
        hosts = request.headers.getall(hdrs.HOST, [""])
        hosts += [request.url.authority] if not request.raw_path.startswith("/") else []
        foreign = [host for host in hosts if host.lower().removesuffix(":80") not in self._hosts]
        if foreign:
            return refusal(HTTPStatus.FORBIDDEN, f"Host must be {' or '.join(sorted(self._hosts))}, got {foreign[0][:80]!r}")
        if not {origin.lower() for origin in request.headers.getall(hdrs.ORIGIN, [])} <= self._origins:
            return refusal(HTTPStatus.FORBIDDEN, "Origin must be missing, or this sensor")
        if not self._allowance.take():
            return refusal(HTTPStatus.TOO_MANY_REQUESTS, f"there must be at most {CONTROL_REQUESTS_A_SECOND.bound} requests a second")
        return None


def _response(answer: Answer) -> web.Response:
    headers = {hdrs.SERVER: _SERVER}
    if answer.document is NOTHING:
        return web.Response(status=answer.status, headers=headers)
    return web.Response(status=answer.status, text=json.dumps(answer.document), content_type="application/json", headers=headers)
