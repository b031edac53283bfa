"""Which requests a sensor's HTTP port takes.

A page of another server could send requests through a browser, so a request must have this sensor as host and must not have another ``Origin``; a real sensor
checks neither, and clients that are no browsers do not notice. Requests of clients that use the port as a proxy (``GET http://10.0.0.2/...``) are taken as well:
so an ordinary user, who may not open port 80, can point ``http_proxy`` at another one.
"""

from http import HTTPStatus
from typing import NamedTuple

from aiohttp import hdrs, web

from hilsim.limits import CONTROL_REQUESTS_A_SECOND
from hilsim.telemetry.allowance import Allowance


class RequestFault(NamedTuple):
    """Why a request is refused."""

    status: HTTPStatus
    reason: str


class HttpGuard:
    """Rule of one port."""

    def __init__(self, address: str, port: int, *names: str) -> None:
        """Take requests of clients that use this address, or one of the names, as host."""
        self._hosts = {host for name in (address, *names) for host in (name, f"{name}:{port}")}
        self._origins = {f"http://{host}" for host in self._hosts}
        self._allowance = Allowance(most=CONTROL_REQUESTS_A_SECOND.bound)

    def fault(self, request: web.Request) -> RequestFault | None:
        """Why a request is refused; None: it is taken."""
        # The authority of a target in absolute form replaces Host (RFC 9112, 3.2.2).
        hosts = request.headers.getall(hdrs.HOST, [""])
        hosts += [request.url.authority] if not request.raw_path.startswith("/") else []
        foreign = [host for host in hosts if host.lower().removesuffix(":80") not in self._hosts]
        if foreign:
            return RequestFault(HTTPStatus.FORBIDDEN, f"Host must be {' or '.join(sorted(self._hosts))}, got {foreign[0][:80]!r}")
        if not {origin.lower() for origin in request.headers.getall(hdrs.ORIGIN, [])} <= self._origins:
            return RequestFault(HTTPStatus.FORBIDDEN, "Origin must be missing, or this sensor")
        if not self._allowance.take():
            return RequestFault(HTTPStatus.TOO_MANY_REQUESTS, f"there must be at most {CONTROL_REQUESTS_A_SECOND.bound} requests a second")
        return None
