"""Client of the packets that a daemon sends: the bytes of a capture, from its control socket or its HTTP port."""

import json
import select
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from hilsim.errors import ConfigError, TransmitError

if TYPE_CHECKING:
    import aiohttp

_HTTP = "http://"
_UDP = "udp:"
_ANSWER_S = 10.0
_PIECE_BYTES = 1 << 18
_LONGEST_ANSWER = 1 << 16


class PacketSource(Protocol):
    """Connection over which packets come; one thread reads, any thread may close."""

    @property
    def answer(self) -> dict[str, Any]:
        """Answer of the daemon."""
        ...

    def read(self, timeout_s: float) -> bytes | None:
        """Wait for bytes of the capture; returns None if none came in time, and no bytes at the end of the connection."""
        ...

    def close(self) -> None:
        """End the connection; closing again does nothing."""
        ...

    def __enter__(self) -> Self:
        """Nothing more to open."""
        ...

    def __exit__(self, *error: object) -> None:
        """End the connection."""
        ...


def open_packets(address: str, token: str | None = None, token_file: str | Path | None = None) -> PacketSource:
    """Ask a daemon for the packets that it sends from now on.

    Args:
        address: Path of the Unix socket (``[control] socket``), or ``http://HOST:PORT`` (``[control] http``).
        token: Token of the daemon, only for ``http://``.
        token_file: File with the token, instead.

    Raises:
        ConfigError: the address has another form, the token is missing or malformed, or the daemon refuses.
        TransmitError: no daemon listens there, or no answer arrives.
    """
    if address.startswith(_HTTP):
        return _WebSocketSource(address, token, token_file)
    if address.startswith(_UDP):
        raise ConfigError(f"packets must be asked for at a control socket or at http://HOST:PORT, got {address}")
    if token is not None or token_file is not None:
        raise ConfigError(f"a token must come with an address http://HOST:PORT, got {address}")
    return _SocketSource(Path(address))


class _Source:
    """Answer and end, the same for both kinds."""

    answer: dict[str, Any]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        raise NotImplementedError

    def _accept(self, line: str | bytes, address: str) -> None:
        """Check the answer.

        Raises:
            ConfigError: the daemon refuses.
            TransmitError: it is no answer.
        """
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self.close()
            raise TransmitError(f"the daemon at {address} must answer within {_ANSWER_S:.0f} s with a JSON object, got {line[:80]!r}")
        if not answer.pop("ok", False):
            self.close()
            raise ConfigError(str(answer.get("error", "the daemon refused the request without a reason")))
        self.answer = answer


class _SocketSource(_Source):
    """Packets from a Unix socket."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._is_closed = False
        self._rest = b""
        line = b""
        try:
            self._socket.settimeout(_ANSWER_S)
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise TransmitError(
                f"a daemon must listen at {path}, got {error.strerror or error}; [control] socket in its rig sets the place"
            ) from error
        with suppress(ConnectionError, TimeoutError):
            self._socket.sendall(b'{"do": "packets"}\n')
            while b"\n" not in line and len(line) < _LONGEST_ANSWER and (piece := self._socket.recv(4096)):
                line += piece
        line, _, self._rest = line.partition(b"\n")
        self._accept(line, str(path))

    def read(self, timeout_s: float) -> bytes | None:
        if self._rest:
            rest, self._rest = self._rest, b""
            return rest
        try:
            if not select.select([self._socket], [], [], timeout_s)[0]:
                return b"" if self._is_closed else None
            return self._socket.recv(_PIECE_BYTES)
        except (OSError, ValueError):  # closed, by the daemon or another thread
            return b""

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()


class _WebSocketSource(_Source):
    """Packets from an HTTP port; the event loop runs only within calls."""

    def __init__(self, address: str, token: str | None, token_file: str | Path | None) -> None:
        import asyncio  # noqa: PLC0415 - slow to import, as the two below

        from hilsim.daemon.remote.http_client import HttpClient  # noqa: PLC0415

        headers = HttpClient(address, token, token_file).headers
        self._closing = threading.Lock()
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._session: aiohttp.ClientSession | None = None
        try:
            line = self._loop.run_until_complete(self._connect(f"{address}/v1/packets", headers))
        except (OSError, TimeoutError) as error:
            self.close()
            raise TransmitError(f"a daemon must listen at {address}, got {error}; [control] http in its rig sets the place") from error
        self._accept(line, address)
        self._waiting: asyncio.Task[aiohttp.WSMessage] | None = None

    async def _connect(self, url: str, headers: dict[str, str]) -> str:
        import aiohttp  # noqa: PLC0415

        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, sock_connect=_ANSWER_S))
        try:
            self._stream = await self._session.ws_connect(url, headers=headers, max_msg_size=0, compress=0)
        except aiohttp.WSServerHandshakeError as error:
            return json.dumps({"ok": False, "error": f"the daemon must accept a WebSocket, got {error.status} {error.message}"})
        except aiohttp.ClientError as error:
            raise OSError(str(error)) from error
        return str((await self._stream.receive(_ANSWER_S)).data)

    def read(self, timeout_s: float) -> bytes | None:
        with self._closing:
            return b"" if self._is_closed else self._loop.run_until_complete(self._read(timeout_s))

    async def _read(self, timeout_s: float) -> bytes | None:
        import asyncio  # noqa: PLC0415

        import aiohttp  # noqa: PLC0415

        if self._waiting is None:
            self._waiting = asyncio.ensure_future(self._stream.receive())
        await asyncio.wait({self._waiting}, timeout=timeout_s)
        if not self._waiting.done():
            return None
        message, self._waiting = self._waiting.result(), None
        return bytes(message.data) if message.type is aiohttp.WSMsgType.BINARY else b""

    def close(self) -> None:
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._loop.run_until_complete(self._end())
                self._loop.close()

    async def _end(self) -> None:
        waiting = getattr(self, "_waiting", None)
        if waiting is not None:
            waiting.cancel()
            with suppress(BaseException):
                await waiting
        if self._session is not None:
            await self._session.close()
