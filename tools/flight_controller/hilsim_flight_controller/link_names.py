"""Links by name: the user's notation, and the program's option for it."""

import re
import socket
from pathlib import Path

_LINK = re.compile(r"pty(:.+)?|serial:.+|(tcp|udp)(:[^:]+:\d+)?")


def is_link(link: str) -> bool:
    """Whether a text is a valid link."""
    return _LINK.fullmatch(link) is not None


def option_of(link: str, directory: Path) -> list[str]:
    """Option of the program for a link such as ``tcp:127.0.0.1:4560``; a pty without a path gets one in ``directory``."""
    kind, _, where = link.partition(":")
    match kind:
        case "pty":
            return ["--pty", str(Path(where).absolute() if where else directory / "flight-controller")]
        case "serial":
            return ["--port", str(Path(where).absolute())]
        case "udp":
            return ["--udp", where or "127.0.0.1:0"]
        case _:
            return ["--tcp", where or f"127.0.0.1:{_free_port()}"]


def _free_port() -> int:
    """A free TCP port of the loopback interface."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
