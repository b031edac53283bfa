"""Server for requests over HTTP and WebSocket, on the daemon's event loop.

- ``POST /v1/request``: a request in JSON (``control_requests``), answered as at the control socket.
- ``GET /v1/help``: the requests; ``GET /v1/openapi.json``: their description for programs. Neither needs the token.
- ``GET /v1/stream``: a WebSocket; each text message is a request, and each answer a message. It can receive events.
- ``GET /v1/packets``: a WebSocket; after one text message, its binary messages together are a capture of what is sent.

A web page can reach a loopback address through a browser, so a request must have this server as ``Host``, must not have another ``Origin``, and must
contain the token, which only the user who runs the daemon can read.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

import structlog
from aiohttp import WSCloseCode, WSMessage, WSMsgType, hdrs, web

from hilsim.daemon.control_requests import answer_parsed, parse_request, refusal
from hilsim.daemon.remote.answers import Answers, Order, known, order_of
from hilsim.daemon.remote.events import StateEvents, Subscription
from hilsim.daemon.remote.openapi import description
from hilsim.daemon.remote.packet_connection import PacketConnection
from hilsim.daemon.remote.token_file import Token
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
_STATUS = {
    HttpRefusal.FOREIGN: 403,
    HttpRefusal.UNAUTHORISED: 401,
    HttpRefusal.TOO_MANY: 429,
    HttpRefusal.TOO_LONG: 413,
    HttpRefusal.TOO_SLOW: 408,
    HttpRefusal.NOT_A_REQUEST: 400,
}
_HEADERS = {
    HttpRefusal.UNAUTHORISED: {"WWW-Authenticate": "Bearer"},
    HttpRefusal.TOO_MANY: {"Retry-After": "1"},
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


class _Stream(NamedTuple):
    """An open WebSocket and its transport."""

    socket: web.WebSocketResponse
    transport: asyncio.Transport


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
                web.get("/v1/stream", self._stream),
                web.get("/v1/packets", self._packets),
            ]
        )
        app.on_shutdown.append(self._close_streams)
        return app

    # -- admission ---------------------------------------------------------------------------------------------------------------------

    async def _admit(self, request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        try:
            self._enforce_admitted(request)
            answer: web.StreamResponse = await handler(request)
        except _RefusedError as refused:
            return self._refused(refused.reason, refused.error)
        return answer

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
        return _json(await answer_parsed(self._running, {"do": "help"}))

    async def _openapi(self, request: web.Request) -> web.Response:
        del request
        return _json(json.dumps(description()))

    async def _request(self, request: web.Request) -> web.Response:
        if not self._has_token(request):
            raise _RefusedError(HttpRefusal.UNAUTHORISED, _NO_TOKEN)
        asked = _parsed(await _body(request))
        with _held(self.held, request):
            answer = await answer_parsed(self._running, asked)
        self._running.http.answered += 1
        return _json(answer)

    # -- streams -------------------------------------------------------------------------------------------------------------------------

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        return await self._open_stream(request, self._serve_requests)

    async def _packets(self, request: web.Request) -> web.StreamResponse:
        return await self._open_stream(request, self._serve_packets)

    async def _open_stream(self, request: web.Request, serve: Callable[[_Stream], Awaitable[None]]) -> web.StreamResponse:
        stream = web.WebSocketResponse(timeout=_CLOSE_S, compress=False, max_msg_size=CONTROL_REQUEST_BYTES.bound)
        if not stream.can_prepare(request):
            raise _RefusedError(HttpRefusal.NOT_A_REQUEST, "a stream must be a WebSocket, got a plain request")
        has_token = self._has_token(request)
        if not has_token and len(self._tokenless) >= TOKENLESS_STREAMS.bound:
            raise _RefusedError(HttpRefusal.TOO_MANY, _TOO_MANY_STREAMS)
        if not has_token:
            self._tokenless.add(stream)
        try:
            await stream.prepare(request)
            if request.transport is not None:
                await self._serve_stream(request, _Stream(stream, request.transport), serve, has_token=has_token)
        finally:
            self._tokenless.discard(stream)
        return stream

    async def _serve_stream(self, request: web.Request, opened: _Stream, serve: Callable[[_Stream], Awaitable[None]], *, has_token: bool) -> None:
        stream, transport = opened
        self._streams.add(stream)
        try:
            with suppress(ConnectionError):
                if has_token or await self._is_authorised(stream):
                    self._tokenless.discard(stream)
                    with _held(self.held, request):
                        await serve(opened)
        except TimeoutError:
            transport.abort()
        finally:
            self._streams.discard(stream)

    async def _serve_requests(self, opened: _Stream) -> None:
        stream, transport = opened
        subscription = Subscription(events=self._events, send=stream.send_str, transport=transport)
        answers = Answers(send=partial(_send, stream), transport=transport)
        try:
            await self._converse(stream, subscription, answers)
        finally:
            await answers.end()
            await subscription.end()

    async def _serve_packets(self, opened: _Stream) -> None:
        """Send the answer, then packets, until the client closes the stream; what it sends is ignored."""
        stream, _ = opened
        packets = PacketConnection(self._running)
        try:
            answer = {"ok": True, **packets.join()}
        except ConfigError as error:
            await _send(stream, refusal(str(error)))
            await stream.close(code=WSCloseCode.TRY_AGAIN_LATER)
            return
        self._running.http.answered += 1
        await _send(stream, json.dumps(answer))
        sending = asyncio.create_task(packets.stream(partial(_send_bytes, stream), lambda: stream.closed), name="control-packets")
        try:
            async for message in stream:
                if message.type is WSMsgType.ERROR:
                    break
        finally:
            packets.leave()
            sending.cancel()
            await asyncio.wait({sending})

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
            reason, error = refused.reason, refused.error
        self._count(reason)
        await _send(stream, refusal(error))
        await stream.close(code=WSCloseCode.POLICY_VIOLATION)
        return False

    async def _converse(self, stream: web.WebSocketResponse, subscription: Subscription, answers: Answers) -> None:
        message: WSMessage
        async for message in stream:
            if message.type is WSMsgType.ERROR:
                is_too_long = getattr(message.data, "code", None) == WSCloseCode.MESSAGE_TOO_BIG
                self._count(HttpRefusal.TOO_LONG if is_too_long else HttpRefusal.NOT_A_REQUEST)
                return
            try:
                asked = self._asked(message)
            except _RefusedError as refused:
                self._count(refused.reason)
                await answers.give(known(refusal(refused.error)), Order.ALONE)
            else:
                await answers.give(self._answer(asked, subscription), order_of(asked))

    def _asked(self, message: WSMessage) -> dict[str, Any]:
        if not self._allowance.take():
            raise _RefusedError(HttpRefusal.TOO_MANY, _TOO_MANY)
        return _parsed(message.data)

    async def _answer(self, asked: Mapping[str, Any], subscription: Subscription) -> str:
        answer = await answer_parsed(self._running, asked, subscription)
        self._running.http.answered += 1
        return answer

    async def _close_streams(self, app: web.Application) -> None:
        del app
        await asyncio.gather(*(self._close(stream) for stream in self._streams))

    @staticmethod
    async def _close(stream: web.WebSocketResponse) -> None:
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(_CLOSE_S):
                await stream.close(code=WSCloseCode.GOING_AWAY)

    # -- refusals ------------------------------------------------------------------------------------------------------------------------

    def _refused(self, reason: HttpRefusal, error: str) -> web.Response:
        self._count(reason)
        answer = _json(refusal(error), _STATUS[reason], _HEADERS.get(reason, {}))
        if reason in {HttpRefusal.TOO_SLOW, HttpRefusal.TOO_LONG} or error == _TOO_MANY_STREAMS:
            answer.force_close()  # further bytes of the connection are not a request, or its place is needed
        return answer

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
        self.error = error


async def _body(request: web.Request) -> bytes:
    """Wait for the body of a request.

    Raises:
        _RefusedError: the body is too long, does not arrive in time, or is not HTTP.
    """
    if (request.content_length or 0) > CONTROL_REQUEST_BYTES.bound:
        raise _RefusedError(HttpRefusal.TOO_LONG, _TOO_LONG)
    try:
        body = await read_body(request)
    except web.HTTPRequestTimeout:
        raise _RefusedError(HttpRefusal.TOO_SLOW, _TOO_SLOW) from None
    except web.HTTPRequestEntityTooLarge:
        raise _RefusedError(HttpRefusal.TOO_LONG, _TOO_LONG) from None
    except web.HTTPBadRequest:
        raise _RefusedError(HttpRefusal.NOT_A_REQUEST, "a request must be a JSON object, got a body that is not HTTP") from None
    if len(body) > CONTROL_REQUEST_BYTES.bound:
        raise _RefusedError(HttpRefusal.TOO_LONG, _TOO_LONG)
    return body


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


async def _send_bytes(stream: web.WebSocketResponse, data: bytes | memoryview) -> None:
    await stream.send_bytes(bytes(data))


def _json(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(text=text, status=status, content_type="application/json", headers={"Cache-Control": "no-store", **(headers or {})})
