"""Server for requests over HTTP and WebSocket, on the daemon's event loop.

- ``POST /v1/request``: a request in JSON (``requests``), answered as at the control socket.
- ``GET /v1/help``: the requests; ``GET /v1/openapi.json``: their description for programs. Neither needs the token.
- ``GET /v1/stream``: a WebSocket; each text message is a request, and each answer a message. It can receive events.
- ``GET /v1/packets``: a WebSocket; after one text message, its binary messages together are a capture of what is sent.

A web page can reach a loopback address through a browser, so a request must have this server as ``Host``, must not have another ``Origin``, and must
contain the token, which only the user who runs the daemon can read.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any

import structlog
from aiohttp import WSCloseCode, WSMessage, WSMsgType, hdrs, web

from hilsim.daemon.control.conversation import Conversation, StateEvents
from hilsim.daemon.control.grammar import parse_request
from hilsim.daemon.control.openapi import description
from hilsim.daemon.control.requests import answer, refusal
from hilsim.daemon.control.token_file import Token
from hilsim.daemon.running_rig import RunningRig
from hilsim.errors import ConfigError
from hilsim.limits import CONTROL_REQUEST_BYTES, CONTROL_REQUESTS_A_SECOND, REQUEST_S, SUBSCRIBER_STALLED_S, TOKENLESS_STREAMS
from hilsim.telemetry.allowance import Allowance
from hilsim.telemetry.http_server import read_body, served
from hilsim.telemetry.readings import HttpRefusal

log = structlog.get_logger("hilsim")

_NO_TOKEN = "a request must have the token of the daemon (Authorization: Bearer TOKEN; [control] token_file)"  # noqa: S105 - not a secret
_TOO_MANY = f"there must be at most {CONTROL_REQUESTS_A_SECOND.bound} requests a second"
_TOO_MANY_STREAMS = f"there must be at most {TOKENLESS_STREAMS.bound} streams that wait for their token"
_TOO_LONG = f"a request must be at most {CONTROL_REQUEST_BYTES.bound} bytes"
_TOO_SLOW = f"a request must arrive within {REQUEST_S.text}"
_STATUS: Mapping[HttpRefusal, tuple[int, Mapping[str, str]]] = {
    HttpRefusal.FOREIGN: (403, {}),
    HttpRefusal.UNAUTHORISED: (401, {"WWW-Authenticate": "Bearer"}),
    HttpRefusal.TOO_MANY: (429, {"Retry-After": "1"}),
    HttpRefusal.TOO_LONG: (413, {}),
    HttpRefusal.TOO_SLOW: (408, {}),
    HttpRefusal.NOT_A_REQUEST: (400, {}),
}
_BODY_REFUSALS: Mapping[type[web.HTTPException], tuple[HttpRefusal, str]] = {
    web.HTTPRequestTimeout: (HttpRefusal.TOO_SLOW, _TOO_SLOW),
    web.HTTPRequestEntityTooLarge: (HttpRefusal.TOO_LONG, _TOO_LONG),
    web.HTTPBadRequest: (HttpRefusal.NOT_A_REQUEST, "a request must be a JSON object, got a body that is not HTTP"),
}
_CLOSE_S = 0.3
"""Longest wait for a WebSocket client's answer to the closing message."""


@asynccontextmanager
async def serve_requests(running: RunningRig, token: Token, listening: socket.socket) -> AsyncIterator[None]:
    """Answer requests at a listening socket while the block runs."""
    address, port, *_ = listening.getsockname()
    server = RequestServer(running, token, f"[{address}]" if ":" in address else address, port)
    async with served(server.app(), listening, server.held):
        yield


class RequestServer:
    """Server of requests.

    Attributes:
        held: Connections with an open request that has the token.
    """

    def __init__(self, running: RunningRig, token: Token, address: str, port: int) -> None:
        """Create a server for ``running`` that accepts clients with ``token`` that use ``address`` (or localhost) and ``port`` as its name."""
        self.held: set[asyncio.BaseProtocol] = set()
        self._running = running
        self._token = token
        names = (address, "localhost")
        self._hosts = {f"{name}:{port}" for name in names} | ({*names} if port == 80 else set())
        self._origins = {f"http://{host}" for host in self._hosts}
        self._allowance = Allowance(most=CONTROL_REQUESTS_A_SECOND.bound)
        self._strangers_allowance = Allowance(most=CONTROL_REQUESTS_A_SECOND.bound)
        self._events = StateEvents(running)
        self._streams: set[web.WebSocketResponse] = set()
        self._tokenless: set[web.WebSocketResponse] = set()

    def app(self) -> web.Application:
        """Web application of the server."""

        @web.middleware
        async def admit(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
            return await self._admit(request, handler)

        app = web.Application(middlewares=[admit], client_max_size=CONTROL_REQUEST_BYTES.bound + 1)
        app.add_routes(
            [
                web.post("/v1/request", self._request),
                web.get("/v1/help", self._help),
                web.get("/v1/openapi.json", self._openapi),
                web.get("/v1/stream", partial(self._stream, of_packets=False)),
                web.get("/v1/packets", partial(self._stream, of_packets=True)),
            ]
        )
        app.on_shutdown.append(self._close_streams)
        return app

    # -- admission ---------------------------------------------------------------------------------------------------------------------

    async def _admit(self, request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        try:
            self._enforce_admitted(request)
            response: web.StreamResponse = await handler(request)
        except _RefusedError as refused:
            return self._refused(refused)
        except tuple(_BODY_REFUSALS) as error:
            return self._refused(_RefusedError(*_BODY_REFUSALS[type(error)]))
        return response

    def _enforce_admitted(self, request: web.Request) -> None:
        if not {host.lower() for host in request.headers.getall(hdrs.HOST, [""])} <= self._hosts:
            raise _RefusedError(HttpRefusal.FOREIGN, f"Host must be {' or '.join(sorted(self._hosts))}")
        if not {origin.lower() for origin in request.headers.getall(hdrs.ORIGIN, [])} <= self._origins:
            raise _RefusedError(HttpRefusal.FOREIGN, "Origin must be missing, or this server: pages of other servers may not send commands")
        allowance = self._allowance if self._has_token(request) else self._strangers_allowance
        if not allowance.take():
            raise _RefusedError(HttpRefusal.TOO_MANY, _TOO_MANY)

    def _has_token(self, request: web.Request) -> bool:
        given = request.headers.getall(hdrs.AUTHORIZATION, [])
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        return scheme.lower() == "bearer" and self._token.is_equal(token.strip())

    # -- requests ------------------------------------------------------------------------------------------------------------------------

    async def _help(self, request: web.Request) -> web.Response:
        del request
        return _json(await answer(self._running, {"do": "help"}))

    async def _openapi(self, request: web.Request) -> web.Response:
        del request
        return _json(description())

    async def _request(self, request: web.Request) -> web.Response:
        if not self._has_token(request):
            raise _RefusedError(HttpRefusal.UNAUTHORISED, _NO_TOKEN)
        if (request.content_length or 0) > CONTROL_REQUEST_BYTES.bound:
            raise _RefusedError(HttpRefusal.TOO_LONG, _TOO_LONG)
        asked = _parsed(await read_body(request))
        with _held(self.held, request):
            answered = await answer(self._running, asked)
        self._running.http.answered += 1
        return _json(answered)

    # -- streams -------------------------------------------------------------------------------------------------------------------------

    async def _stream(self, request: web.Request, *, of_packets: bool) -> web.StreamResponse:
        """Open a WebSocket, and serve it once its client has the token."""
        stream = web.WebSocketResponse(timeout=_CLOSE_S, compress=False, max_msg_size=CONTROL_REQUEST_BYTES.bound)
        if not stream.can_prepare(request):
            raise _RefusedError(HttpRefusal.NOT_A_REQUEST, "a stream must be a WebSocket, got a plain request")
        has_token, transport = self._has_token(request), request.transport
        if not has_token and len(self._tokenless) >= TOKENLESS_STREAMS.bound:
            raise _RefusedError(HttpRefusal.TOO_MANY, _TOO_MANY_STREAMS)
        if not has_token:
            self._tokenless.add(stream)
        try:
            await stream.prepare(request)
            self._streams.add(stream)
            if transport is not None and (has_token or await self._is_authorised(stream)):
                self._tokenless.discard(stream)
                with _held(self.held, request):
                    await self._converse(stream, transport, of_packets=of_packets)
        except ConnectionError:
            pass
        except TimeoutError:
            if transport is not None:
                transport.abort()
        finally:
            self._streams.discard(stream)
            self._tokenless.discard(stream)
        return stream

    async def _converse(self, stream: web.WebSocketResponse, transport: asyncio.Transport, *, of_packets: bool) -> None:
        """Answer messages, or send packets and ignore messages, until the client closes the stream."""
        conversation = Conversation(self._events, partial(_send, stream), transport, carries_packets=of_packets)
        try:
            if of_packets:
                await conversation.take({"do": "packets"}, self._written)
                if not conversation.has_packets:
                    await stream.close(code=WSCloseCode.TRY_AGAIN_LATER)
                    return
                conversation.begin_packets(lambda data: stream.send_bytes(bytes(data)), transport.is_closing)
            async for message in stream:
                if message.type is WSMsgType.ERROR:
                    is_too_long = getattr(message.data, "code", None) == WSCloseCode.MESSAGE_TOO_BIG
                    self._count(HttpRefusal.TOO_LONG if is_too_long else HttpRefusal.NOT_A_REQUEST)
                    return
                if not of_packets:
                    await self._take(conversation, message)
        finally:
            await conversation.end()

    async def _take(self, conversation: Conversation, message: WSMessage) -> None:
        try:
            request = self._asked(message)
        except _RefusedError as refused:
            self._count(refused.reason)
            await conversation.refuse(json.dumps(refusal(str(refused))))
        else:
            await conversation.take(request, self._written)

    def _asked(self, message: WSMessage) -> dict[str, Any]:
        if not self._allowance.take():
            raise _RefusedError(HttpRefusal.TOO_MANY, _TOO_MANY)
        return _parsed(message.data)

    def _written(self, answered: Mapping[str, Any]) -> str:
        self._running.http.answered += 1
        return json.dumps(answered)

    async def _is_authorised(self, stream: web.WebSocketResponse) -> bool:
        """Whether the first message has the token; if not, the stream is closed."""
        reason, error = HttpRefusal.UNAUTHORISED, _NO_TOKEN.replace("Authorization: Bearer TOKEN", 'or {"token": TOKEN} as the first message')
        try:
            async with asyncio.timeout(REQUEST_S.bound):
                message = await stream.receive()
            if message.type in {WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED}:
                return False
            if self._token.is_equal(_parsed(message.data).get("token")):
                await _send(stream, json.dumps({"ok": True}))
                return True
        except TimeoutError:
            reason, error = HttpRefusal.TOO_SLOW, _TOO_SLOW
        except _RefusedError as refused:
            reason, error = refused.reason, str(refused)
        self._count(reason)
        await _send(stream, json.dumps(refusal(error)))
        await stream.close(code=WSCloseCode.POLICY_VIOLATION)
        return False

    async def _close_streams(self, app: web.Application) -> None:
        del app
        await asyncio.gather(*(self._close(stream) for stream in self._streams))

    @staticmethod
    async def _close(stream: web.WebSocketResponse) -> None:
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(_CLOSE_S):
                await stream.close(code=WSCloseCode.GOING_AWAY)

    # -- refusals ------------------------------------------------------------------------------------------------------------------------

    def _refused(self, refused: "_RefusedError") -> web.Response:
        self._count(refused.reason)
        status, headers = _STATUS[refused.reason]
        response = _json(refusal(str(refused)), status, headers)
        if refused.reason in {HttpRefusal.TOO_SLOW, HttpRefusal.TOO_LONG} or str(refused) == _TOO_MANY_STREAMS:
            response.force_close()  # further bytes of the connection are not a request, or its place is needed
        return response

    def _count(self, reason: HttpRefusal) -> None:
        refused = self._running.http.refused
        if not refused[reason]:
            advice = "further ones are counted only: hilsim_control_http_refused_commands_total"
            log.warning("control.request_refused", reason=reason.value, advice=advice)
        refused[reason] += 1


class _RefusedError(Exception):
    """A request that is not answered."""

    def __init__(self, reason: HttpRefusal, error: str) -> None:
        super().__init__(error)
        self.reason = reason


def _parsed(content: object) -> dict[str, Any]:
    """Parse the request in a body (bytes) or a message (a text).

    Raises:
        _RefusedError: the content is not a request.
    """
    try:
        return parse_request(content.decode() if isinstance(content, bytes) else str(content))
    except UnicodeDecodeError:
        raise _RefusedError(HttpRefusal.NOT_A_REQUEST, "a request must be a JSON object, got bytes that are not UTF-8") from None
    except ConfigError as error:
        raise _RefusedError(HttpRefusal.NOT_A_REQUEST, str(error)) from error


@contextmanager
def _held(held: set[asyncio.BaseProtocol], request: web.Request) -> Iterator[None]:
    """Protect a request's connection from being closed in favour of another one while the block runs."""
    connection = request.protocol
    held.add(connection)
    try:
        yield
    finally:
        held.discard(connection)


async def _send(stream: web.WebSocketResponse, text: str) -> None:
    """Send a message.

    Raises:
        TimeoutError: the client does not read.
    """
    async with asyncio.timeout(SUBSCRIBER_STALLED_S.bound):
        await stream.send_str(text)


def _json(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.json_response(content, status=status, headers={"Cache-Control": "no-store", **(headers or {})})
