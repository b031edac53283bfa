"""Gate in front of the page: the only listener of ``hilsim view``, on its event loop.

viser, which makes the page, has no access control: any web page can open a WebSocket to a loopback port through its reader's browser, receive the scene
and press buttons, and any user of the machine can do so too. So viser listens at a Unix socket in a private directory (``page.server``), and
this gate passes on what comes with the token only:

- ``Host`` must be this server (DNS rebinding), and ``Origin``, which a WebSocket must have, too (pages of other servers): both come before anything else.
- ``GET /?token=TOKEN`` sets the token as a cookie, which scripts cannot read and pages of other sites cannot send, and redirects to ``/``.
- Everything else needs the cookie.
- Messages of a browser have bounded sizes and rates, and types from a list: a client of viser may otherwise ask for a public tunnel.

A browser that reads slowly delays the gate, which then reads no further message of viser, and viser gives the browser its newest points next.
"""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import aiohttp
import structlog
from aiohttp import WSCloseCode, WSMsgType, hdrs, web

from hilsim.daemon.control.token_file import Token
from hilsim.errors import TransmitError
from hilsim.limits import CONTROL_REQUESTS_A_SECOND, VIEW_CLIENTS, VIEW_MESSAGE_BYTES, VIEW_MESSAGES_A_SECOND, VIEW_STALLED_S
from hilsim.show.view.messages import Verdict, judged
from hilsim.telemetry.allowance import Allowance
from hilsim.telemetry.guard import is_addressed_here
from hilsim.telemetry.http_server import served
from hilsim.telemetry.metrics_port import BACKLOG
from hilsim.transmit.links.port_owners import socket_holder

log = structlog.get_logger("hilsim")

_CLOSE_S = 0.3
"""Longest wait for a browser's answer to the closing message."""
_UPSTREAM_S = 10.0
"""Longest wait for viser's answer to a request or a handshake."""
_HEARTBEAT_S = 20.0
_TOKEN_BYTES = 32
_SCHEME = "http"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; style-src 'self' 'unsafe-inline'; "
        "worker-src 'self' data: blob:; connect-src 'self' data: blob:; frame-ancestors 'none'; form-action 'none'; base-uri 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer: the page loads nothing from elsewhere, and no other page shows it in a frame."""
_SEND_BUFFER_BYTES = 1 << 17
"""The kernel copies no more than that at a time: it is not interrupted meanwhile, also for a packet that is due."""
_STARTING = """<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="1"><title>hilsim view</title></head>
<body style="font-family: sans-serif; margin: 3em">hilsim view is starting ...</body></html>"""
_NO_TOKEN = "the page needs the token: open the URL that hilsim view printed\n"  # noqa: S105 - not a secret


def new_token() -> str:
    """Make a random token."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def listen(address: str, port: int) -> socket.socket:
    """Open the listening socket of the gate.

    Args:
        address: IPv4 address.
        port: Port; 0 takes any free one.

    Raises:
        TransmitError: the port is in use, which the message says of which program, or the address is not local.
    """
    try:
        listening = socket.create_server((address, port), backlog=BACKLOG)
    except OSError as error:
        holder = socket_holder("tcp", port) if port else ""
        owner = f", in use by {holder}" if holder else ""
        reason = error.strerror or str(error)
        raise TransmitError(
            f"--at must be a free port of this machine, got {address}:{port}{owner}: {reason} (port 0 takes any free port)"
        ) from error
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)  # connections inherit it
    return listening


class Gate:
    """Server between browsers and viser.

    Attributes:
        url: URL that a person opens, with the token.
        held: Connections of admitted browsers, which are never closed in favour of new ones.
        refused: Number of refused requests and messages, by reason.
    """

    def __init__(self, listening: socket.socket, token: str) -> None:
        """Create a gate for a listening socket; ``serve`` runs it."""
        address, port = listening.getsockname()[:2]
        self.held: set[asyncio.BaseProtocol] = set()
        self.refused: dict[str, int] = {}
        self._listening = listening
        self._token = Token(token)
        self._port = port
        self._is_local = ip_address(address).is_loopback
        self._names = {address, "localhost"}
        self._cookie = f"hilsim_view_{port}"  # browsers send cookies to all ports of a host
        self._strangers = Allowance(most=CONTROL_REQUESTS_A_SECOND.bound)
        self._clients: set[web.WebSocketResponse] = set()
        self._session: aiohttp.ClientSession | None = None
        shown = socket.gethostname() if ip_address(address).is_unspecified else address
        self.url = f"{_SCHEME}://{shown}:{port}/?token={token}"

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Answer requests while the block runs: by a waiting page until ``open_to`` is called."""
        async with served(self._app(), self._listening, self.held):
            try:
                yield
            finally:
                if self._session is not None:
                    await self._session.close()

    def open_to(self, upstream: Path) -> None:
        """Pass requests on to viser at a Unix socket from now on; to be called on the event loop."""
        timeout = aiohttp.ClientTimeout(total=_UPSTREAM_S)
        self._session = aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(upstream), limit=0), timeout=timeout, auto_decompress=False)

    def _app(self) -> web.Application:
        @web.middleware
        async def admit(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
            return await self._admitted(request, handler)

        app = web.Application(middlewares=[admit], client_max_size=1024)
        app.add_routes([web.get("/", self._page)])
        app.on_shutdown.append(self._close_clients)
        return app

    # -- admission ---------------------------------------------------------------------------------------------------------------------

    async def _admitted(self, request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        if "token" in request.query:
            return self._with_cookie(request)
        answer: web.StreamResponse = await handler(request)
        return answer

    def _refusal(self, request: web.Request) -> web.Response | None:
        hosts = request.headers.getall(hdrs.HOST, [])
        if len(hosts) != 1 or not self._is_own(hosts[0].lower()):
            return self._refused("foreign_host", 403, "Host must be this server\n")
        origins = request.headers.getall(hdrs.ORIGIN, [])
        is_stream = hdrs.UPGRADE in request.headers
        if any(origin.lower() != f"{_SCHEME}://{hosts[0].lower()}" for origin in origins) or (is_stream and len(origins) != 1):
            return self._refused("foreign_origin", 403, "Origin must be this server: pages of other servers may not use this one\n")
        if self._is_known(request):
            return None
        if not self._strangers.take():
            return self._refused("too_many", 429, f"there must be at most {CONTROL_REQUESTS_A_SECOND.bound} requests a second\n")
        return self._refused("no_token", 401, _NO_TOKEN)

    def _is_own(self, host: str) -> bool:
        """Whether a ``Host`` is this server: by address, or by an IP address or the machine's name where other machines may connect."""
        name, colon, port = host.rpartition(":")
        if not colon or name.endswith(":"):
            name, port = host, "80"
        if port != str(self._port):
            return False
        return name in self._names or (not self._is_local and is_addressed_here(name, ()))

    def _is_known(self, request: web.Request) -> bool:
        return any(self._token.is_equal(given) for given in (request.cookies.get(self._cookie), request.query.get("token")) if given)

    def _with_cookie(self, request: web.Request) -> web.Response:
        answer = web.Response(status=303, headers={**_HEADERS, hdrs.LOCATION: "/"})
        answer.set_cookie(self._cookie, request.query["token"], httponly=True, samesite="Strict", path="/")
        return answer

    def _refused(self, reason: str, status: int, text: str) -> web.Response:
        self._count(reason)
        answer = web.Response(status=status, text=text, headers=_HEADERS)
        answer.force_close()
        return answer

    def _count(self, reason: str) -> None:
        if reason not in self.refused:
            log.warning("view.refused", reason=reason, advice="further ones are counted only")
        self.refused[reason] = self.refused.get(reason, 0) + 1

    # -- pages ---------------------------------------------------------------------------------------------------------------------------

    async def _page(self, request: web.Request) -> web.StreamResponse:
        if hdrs.UPGRADE in request.headers:
            return await self._stream(request)
        if self._session is None:
            return web.Response(text=_STARTING, content_type="text/html", headers=_HEADERS)
        encoding = {hdrs.ACCEPT_ENCODING: "gzip" if "gzip" in request.headers.get(hdrs.ACCEPT_ENCODING, "") else "identity"}
        async with self._session.get("http://viser/", headers=encoding) as got:
            headers = dict(_HEADERS)
            headers.update({name: got.headers[name] for name in (hdrs.CONTENT_TYPE, hdrs.CONTENT_ENCODING) if name in got.headers})
            return web.Response(status=got.status, body=await got.read(), headers=headers)

    # -- streams -------------------------------------------------------------------------------------------------------------------------

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        offered = tuple(word.strip() for word in request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, "").split(",") if word.strip().startswith("viser-"))
        client = web.WebSocketResponse(
            timeout=_CLOSE_S, heartbeat=_HEARTBEAT_S, compress=False, max_msg_size=VIEW_MESSAGE_BYTES.bound, protocols=offered[:1]
        )
        if self._session is None or not client.can_prepare(request):
            return self._refused("not_a_stream", 400, "a stream must be a WebSocket of a page that has started\n")
        if len(self._clients) >= VIEW_CLIENTS.bound:
            return self._refused("too_many_clients", 503, f"there must be at most {VIEW_CLIENTS.bound} clients\n")
        connection = request.protocol
        self._clients.add(client)
        self.held.add(connection)
        try:
            await client.prepare(request)
            async with self._session.ws_connect(
                "ws://viser/", protocols=offered[:1], max_msg_size=0, timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S)
            ) as upstream:
                await self._relay(client, upstream)
        except (aiohttp.ClientError, ConnectionError):
            await client.close(code=WSCloseCode.TRY_AGAIN_LATER)
        except TimeoutError:
            self._count("stalled")
            if request.transport is not None:
                request.transport.abort()
        finally:
            self._clients.discard(client)
            self.held.discard(connection)
        return client

    async def _relay(self, client: web.WebSocketResponse, upstream: aiohttp.ClientWebSocketResponse) -> None:
        """Relay messages both ways until one side ends.

        Raises:
            TimeoutError: the browser takes no message.
        """
        ways = [asyncio.create_task(self._to_browser(upstream, client)), asyncio.create_task(self._to_viser(client, upstream))]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in done:
                way.result()
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        code = upstream.close_code if upstream.closed and upstream.close_code else WSCloseCode.OK
        await client.close(code=code)

    @staticmethod
    async def _to_browser(upstream: aiohttp.ClientWebSocketResponse, client: web.WebSocketResponse) -> None:
        async for message in upstream:
            if message.type is not WSMsgType.BINARY:
                return
            async with asyncio.timeout(VIEW_STALLED_S.bound):
                await client.send_bytes(message.data)

    async def _to_viser(self, client: web.WebSocketResponse, upstream: aiohttp.ClientWebSocketResponse) -> None:
        allowance = Allowance(most=VIEW_MESSAGES_A_SECOND.bound)
        async for message in client:
            if message.type is not WSMsgType.BINARY:
                await self._end(client, message)
                return
            verdict = judged(message.data) if allowance.take() else Verdict.TOO_MANY
            if verdict is Verdict.PASSED:
                await upstream.send_bytes(message.data)
                continue
            self._count(verdict.value)
            if verdict is not Verdict.NOT_PERMITTED:
                await client.close(code=WSCloseCode.POLICY_VIOLATION)
                return

    async def _end(self, client: web.WebSocketResponse, message: aiohttp.WSMessage) -> None:
        """Close a connection on which a message came that is none of viser's, or an error."""
        code = getattr(message.data, "code", None) if message.type is WSMsgType.ERROR else WSCloseCode.UNSUPPORTED_DATA
        if code is not None:  # else the connection was lost
            self._count("too_long" if code == WSCloseCode.MESSAGE_TOO_BIG else "malformed")
            await client.close(code=code)

    async def _close_clients(self, app: web.Application) -> None:
        del app
        await asyncio.gather(*(self._close(client) for client in tuple(self._clients)))

    @staticmethod
    async def _close(client: web.WebSocketResponse) -> None:
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(_CLOSE_S):
                await client.close(code=WSCloseCode.GOING_AWAY)
