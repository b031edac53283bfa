"""Client of a daemon's control socket or port: one command, one answer, without an event loop. It imports no slow module."""

import socket
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from hilsim.errors import ConfigError, TransmitError
from hilsim.transmit.hosts import address_of

if TYPE_CHECKING:
    from hilsim.daemon.remote.http_client import HttpClient

_UDP = "udp:"
_HTTP = "http://"
_SOCKET_ANSWER_S = 10.0
_DATAGRAM_ANSWER_S = 5.0
_LONGEST_ANSWER = 1 << 22
_LONGEST_DATAGRAM = 65_507
"""Largest payload of a UDP datagram over IPv4, in bytes."""


def sender(address: str, token: str | None = None, token_file: str | Path | None = None) -> Callable[[str], str]:
    """Make a function that sends one command to the daemon at an address, and returns its answer.

    Args:
        address: ``udp:HOST:PORT`` (``[control] listen``), ``http://HOST:PORT`` (``[control] http``), or the path of a Unix socket (``[control] socket``).
        token: Token of the daemon, only for ``http://``.
        token_file: File with the token (``[control] token_file``), instead.

    Raises:
        ConfigError: the address has none of these forms, or the token is missing or malformed.
    """
    if address.startswith(_HTTP):
        client = _http_client(address, token, token_file)
        return lambda line: client.send_words(line, _SOCKET_ANSWER_S)
    if token is not None or token_file is not None:
        raise ConfigError(f"a token must come with an address http://HOST:PORT, got {address}")
    if not address.startswith(_UDP):
        path = Path(address)
        return lambda line: send_by_socket(path, line)
    host, _, port = address.removeprefix(_UDP).rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535):
        raise ConfigError(f"ADDRESS must be udp:HOST:PORT with a port of 1 to 65535, got {address}")
    return lambda line: send_by_datagram(host, int(port), line)


def send_request(address: str, line: str, wait_until_s: float = 0.0, token: str | None = None, token_file: str | Path | None = None) -> str:
    """Send one request in JSON to the daemon at a Unix socket or an ``http://`` address; returns the line of its answer.

    Args:
        address: Path of the socket, or ``http://HOST:PORT``.
        line: Request.
        wait_until_s: Rig time (s) to which the usual time-out is added.
        token: Token of the daemon, only for ``http://``.
        token_file: File with the token, instead.

    Raises:
        ConfigError: the address is a port for datagrams, which accepts no such requests, or the token is missing or malformed.
        TransmitError: no daemon listens there, or no answer arrives.
    """
    if address.startswith(_UDP):
        raise ConfigError(
            f"requests in JSON must go to the control socket ([control] socket of the rig) or to http://HOST:PORT (http), got {address}"
        )
    if address.startswith(_HTTP):
        return _http_client(address, token, token_file).send(line, _SOCKET_ANSWER_S + wait_until_s)
    return send_by_socket(Path(address), line, _SOCKET_ANSWER_S + wait_until_s)


def _http_client(address: str, token: str | None, token_file: str | Path | None) -> "HttpClient":
    from hilsim.daemon.remote.http_client import HttpClient  # noqa: PLC0415 - slow to import: http.client

    return HttpClient(address, token, token_file)


def done(answer: str) -> str:
    """Return the answer if the command was executed.

    Raises:
        ConfigError: the command was refused.
    """
    if answer.startswith("error: "):
        raise ConfigError(answer.removeprefix("error: "))
    return answer


def send_by_socket(path: Path, line: str, answer_s: float = _SOCKET_ANSWER_S) -> str:
    """Send a running daemon one command through its Unix socket; returns its answer.

    Args:
        path: Path of the socket.
        line: Command, or request in JSON.
        answer_s: Time-out.

    Raises:
        TransmitError: no daemon listens there, or no answer arrives.
    """
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as asking:
        asking.settimeout(answer_s)
        try:
            asking.connect(str(path))
        except OSError as error:
            raise TransmitError(
                f"a daemon must listen at {path}, got {error.strerror or error}; [control] socket in its rig sets the place"
            ) from error
        try:
            asking.sendall(f"{line}\n".encode())
            answer = _line(asking, answer_s)
        except (ConnectionError, TimeoutError):
            answer = b""
    if not answer.endswith(b"\n"):
        raise TransmitError(f"the daemon at {path} must answer within {answer_s:.0f} s, got nothing")
    return answer.decode().rstrip("\n")


def _line(asking: socket.socket, answer_s: float) -> bytes:
    """Read bytes up to the end of a line, or of the connection."""
    until_s = time.monotonic() + answer_s
    answer = bytearray()
    while not answer.endswith(b"\n") and len(answer) <= _LONGEST_ANSWER:
        asking.settimeout(max(until_s - time.monotonic(), 0.001))
        chunk = asking.recv(1 << 16)
        if not chunk:
            break
        answer += chunk
    return bytes(answer)


def send_by_datagram(host: str, port: int, line: str) -> str:
    """Send a running daemon one command by UDP; returns its answer.

    Raises:
        TransmitError: the host has no address, no daemon listens there, or no answer arrived: a datagram may be lost.
    """
    try:
        address = address_of(host)
    except TransmitError as error:
        raise TransmitError(f"the host of udp:{host}:{port} {error}") from error
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as asking:
        try:
            asking.connect((address, port))
            asking.settimeout(_DATAGRAM_ANSWER_S)
            asking.send(f"{line}\n".encode())
            return asking.recv(_LONGEST_DATAGRAM).decode(errors="replace").rstrip("\n")
        except TimeoutError:
            raise TransmitError(
                f"the daemon at udp:{host}:{port} must answer within {_DATAGRAM_ANSWER_S:.0f} s, got nothing; does it listen there ([control] listen), and accept this host (peers)?"
            ) from None
        except OSError as error:
            raise TransmitError(
                f"a daemon must listen at udp:{host}:{port}, got {error.strerror or error}; [control] listen in its rig sets the place"
            ) from error
