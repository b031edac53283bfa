"""Client of a daemon's control, the same for each kind of address: one request, one answer, without an event loop. It imports no slow module."""

import json
import os
import socket
import time
from base64 import b64encode
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hilsim.daemon.control.grammar import COMMANDS
from hilsim.daemon.control.packet_source import PacketSource, take_message
from hilsim.daemon.control.token_file import checked_token, read_token
from hilsim.errors import ConfigError, TransmitError
from hilsim.transmit.hosts import address_of

_HTTP, _UDP = "http://", "udp:"
_ANSWER_S = 10.0
_DATAGRAM_ANSWER_S = 5.0
_LONGEST_ANSWER = 1 << 22
_LONGEST_DATAGRAM = 65_507
"""Largest payload of a UDP datagram over IPv4, in bytes."""
_ANSWERED = frozenset({200, 400, 401, 403, 413})
"""Statuses whose body is the answer, or the rule that the request breaks."""


class Client:
    """Client of the daemon at one address; each request has a connection of its own, so the daemon may be restarted in between.

    Attributes:
        address: Path of a Unix socket (``[control] socket``), ``http://HOST:PORT`` (``[control] http``) or ``udp:HOST:PORT`` (``[control] listen``).
    """

    def __init__(self, address: str | Path, token: str | None = None, token_file: str | Path | None = None) -> None:
        """Create a client, without connecting.

        Args:
            address: Address of the daemon.
            token: Token of the daemon, only for ``http://``.
            token_file: File with the token (``[control] token_file``), instead.

        Raises:
            ConfigError: the address has none of these forms, the token is missing or malformed, or its file cannot be used.
        """
        self.address = str(address)
        self._host, self._port, self._token = "", 0, ""
        if self.address.startswith(_HTTP):
            self._host, self._port = _endpoint(self.address, _HTTP)
            if (token is None) == (token_file is None):
                raise ConfigError(f"token or token_file must be given for {address}, got {'none' if token is None else 'both'}")
            self._token = read_token(Path(token_file)) if token_file is not None else checked_token(token or "", "token")
        elif token is not None or token_file is not None:
            raise ConfigError(f"a token must come with an address http://HOST:PORT, got {address}")
        elif self.address.startswith(_UDP):
            self._host, self._port = _endpoint(self.address, _UDP)

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request; returns the keys of its answer, without ``ok``.

        Raises:
            ConfigError: the daemon refuses, or the address is a port for datagrams, which accepts ``grammar.COMMANDS`` alone.
            TransmitError: no daemon listens there, or no answer arrives.
        """
        if self.address.startswith(_UDP) and request.get("do") not in COMMANDS:
            raise ConfigError(
                f"requests but {', '.join(COMMANDS)} must go to the control socket ([control] socket of the rig) or to http://HOST:PORT (http), got {self.address}"
            )
        return self._accepted(self.exchange(json.dumps(request), _ANSWER_S + _at_s(request)))

    def exchange(self, text: str, answer_s: float = _ANSWER_S) -> str:
        """Send the text of a request; returns the text of its answer.

        Args:
            text: Request in JSON; not to ``http://``, also in words.
            answer_s: Time-out; a datagram's is shorter.

        Raises:
            TransmitError: no daemon listens there, or no answer arrives.
        """
        if self.address.startswith(_UDP):
            return self._exchange_datagrams(text)
        return self._post(text, answer_s) if self._token else self._exchange_lines(text, answer_s)

    def packets(self) -> PacketSource:
        """Follow the packets that the daemon sends from now on.

        Raises:
            ConfigError: the address is a port for datagrams, or the daemon refuses.
            TransmitError: no daemon listens there, or no answer arrives.
        """
        if self.address.startswith(_UDP):
            raise ConfigError(f"packets must be asked for at a control socket or at http://HOST:PORT, got {self.address}")
        connection = self._connected(_ANSWER_S)
        try:
            answer, rest = self._join_web_socket(connection) if self._token else self._join_lines(connection)
            return PacketSource(connection, self._accepted(answer.decode(errors="replace")), rest, has_messages=bool(self._token))
        except BaseException:
            connection.close()
            raise

    # -- transports ----------------------------------------------------------------------------------------------------------------------

    def _connected(self, answer_s: float) -> socket.socket:
        try:
            return socket.create_connection((self._host, self._port), answer_s) if self._token else _unix_connection(self.address, answer_s)
        except OSError as error:
            raise self._missing("http" if self._token else "socket", error) from error

    def _missing(self, key: str, error: OSError) -> TransmitError:
        return TransmitError(f"a daemon must listen at {self.address}, got {error.strerror or error}; [control] {key} in its rig sets the place")

    def _silent(self, answer_s: float, got: object = "nothing") -> TransmitError:
        return TransmitError(f"the daemon at {self.address} must answer within {answer_s:.0f} s, got {got}")

    def _exchange_lines(self, text: str, answer_s: float) -> str:
        with closing(self._connected(answer_s)) as connection:
            answer = _until(connection, f"{text}\n".encode(), b"\n", answer_s)
        if not answer.endswith(b"\n"):
            raise self._silent(answer_s)
        return answer.decode().rstrip("\n")

    def _exchange_datagrams(self, text: str) -> str:
        try:
            address = address_of(self._host)
        except TransmitError as error:
            raise TransmitError(f"the host of {self.address} {error}") from error
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as connection:
            try:
                connection.connect((address, self._port))
                connection.settimeout(_DATAGRAM_ANSWER_S)
                connection.send(f"{text}\n".encode())
                return connection.recv(_LONGEST_DATAGRAM).decode(errors="replace").rstrip("\n")
            except TimeoutError:
                raise self._silent(_DATAGRAM_ANSWER_S, "nothing; does it listen there ([control] listen), and accept this host (peers)?") from None
            except OSError as error:
                raise self._missing("listen", error) from error

    def _post(self, text: str, answer_s: float) -> str:
        import http.client  # noqa: PLC0415 - slow to import

        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        with closing(http.client.HTTPConnection(self._host, self._port)) as connection:
            connection.sock = self._connected(answer_s)
            try:
                connection.request("POST", "/v1/request", body=text.encode(errors="replace"), headers=headers)
                response = connection.getresponse()
                answer = response.read(_LONGEST_ANSWER).decode(errors="replace")
            except (OSError, http.client.HTTPException) as error:
                raise self._silent(answer_s, error or type(error).__name__) from error
        if response.status not in _ANSWERED:
            raise TransmitError(f"the daemon at {self.address} must answer a request, got {response.status} {answer[:200].strip()}")
        return answer

    # -- packets -------------------------------------------------------------------------------------------------------------------------

    def _join_lines(self, connection: socket.socket) -> tuple[bytes, bytes]:
        """Ask for packets; returns the answer, and bytes of the capture behind it."""
        answer, _, rest = _until(connection, b'{"do": "packets"}\n', b"\n", _ANSWER_S).partition(b"\n")
        return answer, rest

    def _join_web_socket(self, connection: socket.socket) -> tuple[bytes, bytes]:
        """Open the WebSocket of packets; returns the answer, and bytes of the messages behind it."""
        lines = (
            "GET /v1/packets HTTP/1.1",
            f"Host: {self.address.removeprefix(_HTTP).rstrip('/')}",
            f"Authorization: Bearer {self._token}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {b64encode(os.urandom(16)).decode()}",
        )
        head, _, rest = _until(connection, "".join(f"{line}\r\n" for line in (*lines, "")).encode(), b"\r\n\r\n", _ANSWER_S).partition(b"\r\n\r\n")
        status = head.partition(b"\r\n")[0].decode(errors="replace").partition(" ")[2]
        if head and not status.startswith("101"):
            raise ConfigError(f"the daemon must accept a WebSocket, got {status[:80]}")
        received = bytearray(rest)
        with suppress(ConnectionError, TimeoutError):
            while (message := take_message(received)) is None and (piece := connection.recv(4096)):
                received += piece
        return (b"" if message is None else message[1]), bytes(received)

    def _accepted(self, text: str) -> dict[str, Any]:
        """Keys of an answer.

        Raises:
            ConfigError: the daemon refuses.
            TransmitError: it is no answer.
        """
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise TransmitError(f"the daemon at {self.address} must answer with a JSON object, got {text[:80]!r}")
        if answer.pop("ok", "error" not in answer) is not True:
            raise ConfigError(str(answer.get("error", "the daemon refused the request without a reason")))
        return answer


def _unix_connection(path: str, answer_s: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(answer_s)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def _until(connection: socket.socket, request: bytes, end: bytes, answer_s: float) -> bytes:
    """Send a request; returns what arrives up to an end, the end of the connection, or the time-out, and bytes behind it."""
    until_s, answer, looked = time.monotonic() + answer_s, bytearray(), 0
    with suppress(ConnectionError, TimeoutError):
        connection.sendall(request)
        while answer.find(end, looked) < 0 and len(answer) <= _LONGEST_ANSWER:
            looked = max(len(answer) - len(end) + 1, 0)
            connection.settimeout(max(until_s - time.monotonic(), 0.001))
            chunk = connection.recv(1 << 16)
            if not chunk:
                break
            answer += chunk
    return bytes(answer)


def _at_s(request: Mapping[str, Any]) -> float:
    """Rig time (s) until which the answer may be delayed."""
    change = request.get("change")
    at_s = change.get("at_s") if isinstance(change, dict) else None
    return float(at_s) if isinstance(at_s, int | float) else 0.0


def _endpoint(address: str, form: str) -> tuple[str, int]:
    """Host and port of an address.

    Raises:
        ConfigError: it is not the form and ``HOST:PORT``.
    """
    place = address.removeprefix(form).rstrip("/")
    try:
        parts = urlsplit(f"//{place}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port or parts.netloc != place or "@" in place:
        raise ConfigError(f"ADDRESS must be {form}HOST:PORT with a port of 1 to 65535, got {address}")
    return host, port
