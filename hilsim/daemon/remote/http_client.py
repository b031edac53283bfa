"""Client of a daemon's HTTP control server, made with the standard library: one request, one answer. It imports no slow module."""

import http.client
import json
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from hilsim.daemon.remote.token_file import checked_token, read_token
from hilsim.errors import ConfigError, TransmitError

_HTTP = "http://"
_LONGEST_ANSWER = 1 << 22
_ANSWERED = frozenset({200, 400, 401, 403, 413})
"""Statuses whose body is the answer, or the rule that the request breaks."""


class HttpClient:
    """Client of one daemon.

    Attributes:
        address: ``http://HOST:PORT``.
    """

    def __init__(self, address: str, token: str | None, token_file: str | Path | None) -> None:
        """Create a client of the daemon at an address, without connecting.

        Args:
            address: ``http://HOST:PORT``.
            token: Token of the daemon.
            token_file: File with the token, instead.

        Raises:
            ConfigError: the address has another form, the token is missing, or its file cannot be used.
        """
        self.address = address
        self._host, self._port = _endpoint(address)
        if (token is None) == (token_file is None):
            raise ConfigError(f"token or token_file must be given for {address}, got {'none' if token is None else 'both'}")
        self._token = read_token(Path(token_file)) if token_file is not None else checked_token(token or "", "token")

    @property
    def headers(self) -> dict[str, str]:
        """Header with the token."""
        return {"Authorization": f"Bearer {self._token}"}

    def send_words(self, line: str, answer_s: float) -> str:
        """Send the daemon one command in words, or one request in JSON; returns its answer in the form of the control socket.

        Raises:
            TransmitError: no daemon listens there, or no answer arrives.
        """
        if line.lstrip().startswith("{"):
            return self.send(line, answer_s)
        try:
            request = request_of_words(line)
        except ConfigError as error:
            return f"error: {error}"
        answer = _object(self.send(json.dumps(request), answer_s), self.address)
        if not answer.pop("ok", False):
            return f"error: {answer.get('error', 'the daemon refused the request without a reason')}"
        if request["do"] == "state":
            answer = {"replays": answer.get("replays", [])}
        return json.dumps(answer) if answer else "ok"

    def send(self, line: str, answer_s: float) -> str:
        """Send the daemon one request in JSON; returns the line of its answer.

        Raises:
            TransmitError: no daemon listens there, or no answer arrives.
        """
        headers = {**self.headers, "Content-Type": "application/json"}
        with closing(http.client.HTTPConnection(self._host, self._port, timeout=answer_s)) as connection:
            try:
                connection.connect()
            except OSError as error:
                raise TransmitError(
                    f"a daemon must listen at {self.address}, got {error.strerror or error}; [control] http in its rig sets the place"
                ) from error
            try:
                connection.request("POST", "/v1/request", body=line.encode(errors="replace"), headers=headers)
                response = connection.getresponse()
                answer = response.read(_LONGEST_ANSWER).decode(errors="replace")
            except (OSError, http.client.HTTPException) as error:
                raise TransmitError(
                    f"the daemon at {self.address} must answer within {answer_s:.0f} s, got {error or type(error).__name__}"
                ) from error
        if response.status not in _ANSWERED:
            raise TransmitError(f"the daemon at {self.address} must answer a request, got {response.status} {answer[:200].strip()}")
        return answer


def request_of_words(line: str) -> dict[str, object]:
    """Convert a command in words to a request.

    Raises:
        ConfigError: the command is unknown.
    """
    match line.split():
        case ["pause" | "resume" as verb, *names] if len(names) <= 1:
            return {"do": verb, "replay": "".join(names)}
        case ["seek", seconds, *names] if len(names) <= 1:
            return {"do": "seek", "position_s": _seconds(seconds), "replay": "".join(names)}
        case ["status"]:
            return {"do": "state"}
        case ["health"]:
            return {"do": "health"}
    raise ConfigError(f'a command must be pause [NAME], resume [NAME], seek SECONDS [NAME], status or health, got "{line.strip()}"')


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= 1e8:
        raise ConfigError(f"a position must be 0 to 1e8 s, got {text}")
    return seconds


def _object(text: str, address: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise TransmitError(f"the daemon at {address} must answer with a JSON object, got {text[:80]!r}")
    return found


def _endpoint(address: str) -> tuple[str, int]:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port or address.rstrip("/") != f"{_HTTP}{parts.netloc}" or "@" in parts.netloc:
        raise ConfigError(f"ADDRESS must be http://HOST:PORT with a port of 1 to 65535, got {address}")
    return host, port
