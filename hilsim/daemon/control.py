"""What a running daemon can be told: one line a command, one line an answer, over a Unix socket.

=====================  =====================================================
command                answer
=====================  =====================================================
``pause [NAME]``       ``ok`` when the replay (or all of them) is held back
``resume [NAME]``      ``ok`` when it goes on from where it was
``seek SECONDS [NAME]``  ``ok``; it goes on at that capture time
``status``             one JSON object: each replay's position and state
=====================  =====================================================

What cannot be done is answered by ``error: …``.
"""

import asyncio
import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from hilsim.daemon.station import Station
from hilsim.errors import ConfigError, HilsimError, TransmitError

_LONGEST_LINE = 1024


def obey(station: Station, line: str) -> str:
    """Do what a command line says; returns the answer's text.

    Raises:
        ConfigError: it is not understood, or names a replay that is not there.
    """
    match line.split():
        case ["pause" | "resume" as verb, *names] if len(names) <= 1:
            for deck in station.replays.choose("".join(names)):
                deck.pause(paused=verb == "pause")
            return "ok"
        case ["seek", seconds, *names] if len(names) <= 1:
            position_s = _position(seconds)
            for deck in station.replays.choose("".join(names)):
                deck.seek(position_s)
            return "ok"
        case ["status"]:
            return json.dumps({"replays": [asdict(reading) for reading in station.replays.readings()]})
    raise ConfigError(f'a command must be pause [NAME], resume [NAME], seek SECONDS [NAME] or status, got "{line.strip()}"')


def _position(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds <= 1e8:
        raise ConfigError(f"a position must be 0 s or more, got {text}")
    return seconds


@asynccontextmanager
async def serve_control(station: Station, path: Path | None) -> AsyncIterator[None]:
    """Obey commands at a Unix socket until the block is left; without a path do nothing.

    Raises:
        TransmitError: the socket cannot be made.
    """
    if path is None:
        yield
        return

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                line = (await reader.readuntil()).decode(errors="replace")
                try:
                    answer = obey(station, line)
                except HilsimError as error:
                    answer = f"error: {error}"
                writer.write(f"{answer}\n".encode())
                await writer.drain()
        writer.close()

    try:
        await asyncio.to_thread(path.unlink, missing_ok=True)
        server = await asyncio.start_unix_server(converse, path, limit=_LONGEST_LINE)
        await asyncio.to_thread(path.chmod, 0o600)
    except OSError as error:
        raise TransmitError(f"the control socket must be a path that can be created, got {path}: {error.strerror or error}") from error
    try:
        yield
    finally:
        server.close()
        await asyncio.to_thread(path.unlink, missing_ok=True)


async def tell(path: Path, line: str) -> str:
    """Give a running daemon one command; returns its answer.

    Raises:
        TransmitError: nobody listens there.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(path)
    except OSError as error:
        raise TransmitError(f"a daemon must listen at {path}, got {error.strerror or error}; [control] socket in its rig says where") from error
    writer.write(f"{line}\n".encode())
    answer = (await reader.readline()).decode().rstrip("\n")
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
    return answer
