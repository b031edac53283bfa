"""Commands to a running daemon over a Unix socket: one line for each command and each answer (by UDP: ``control_datagrams``).

=====================  =====================================================
command                answer
=====================  =====================================================
``pause [NAME]``       ``ok`` when the replay (or all of them) is paused
``resume [NAME]``      ``ok`` when it continues
``seek SECONDS [NAME]``  ``ok``; it continues at that capture time
``status``             one JSON object: each replay's position and state
``health``             one JSON object: level, faults, the last minute of
                       counters, now and as it was at the latest faults
=====================  =====================================================

The answer to a refused command is ``error: …``. A line that begins with a brace is a request in JSON (``control_requests``).
"""

import asyncio
import json
import math
import select
import socket
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

from hilsim.daemon.control_requests import Subscriber, answer_parsed, parse_request, refusal
from hilsim.daemon.remote.answers import Answers, Order, known, order_of
from hilsim.daemon.remote.events import StateEvents, Subscription
from hilsim.daemon.remote.packet_connection import PacketConnection
from hilsim.daemon.running_rig import RunningRig
from hilsim.errors import ConfigError, HilsimError, TransmitError
from hilsim.limits import CONTROL_LINE_BYTES, CONTROL_REQUEST_BYTES
from hilsim.telemetry.answers import health_answer

_PROBE_S = 1.0


def obey(running: RunningRig, line: str) -> str:
    """Execute a command line; returns the answer.

    Raises:
        ConfigError: the command is unknown, or its replay does not exist.
    """
    match line.split():
        case ["pause" | "resume" as verb, *names] if len(names) <= 1:
            for replay_source in running.replays.choose("".join(names)):
                replay_source.pause(paused=verb == "pause")
            return "ok"
        case ["seek", seconds, *names] if len(names) <= 1:
            position_s = _position(seconds)
            for replay_source in running.replays.choose("".join(names)):
                replay_source.seek(position_s)
            return "ok"
        case ["status"]:
            return json.dumps({"replays": [asdict(reading) for reading in running.replays.readings()]})
        case ["health"]:
            now_ns = time.monotonic_ns()
            return json.dumps({**health_answer(running.reading(), now_ns), **running.health.report(now_ns)})
    raise ConfigError(f'a command must be pause [NAME], resume [NAME], seek SECONDS [NAME], status or health, got "{line.strip()}"')


def _position(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds <= 1e8:
        raise ConfigError(f"a position must be 0 to 1e8 s, got {text}")
    return seconds


@asynccontextmanager
async def serve_control(running: RunningRig, path: Path | None) -> AsyncIterator[None]:
    """Execute commands from a Unix socket until the block is left; without a path do nothing.

    Raises:
        TransmitError: the socket cannot be created.
    """
    if path is None:
        yield
        return

    listener = await asyncio.to_thread(_listen, path)
    conversations: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}
    events = StateEvents(running)

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversations[asyncio.current_task()] = writer
        packets = PacketConnection(running)
        subscription = Subscription(events=events, send=partial(_send_line, writer), transport=writer.transport, join_packets=packets.join)
        answers = Answers(send=partial(_send_line, writer), transport=writer.transport)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while not packets.has_joined:
                    line = (await reader.readuntil()).decode(errors="replace")
                    await answers.give(*_answer(running, line, subscription))
                await subscription.end()
                await packets.stream(partial(_send_bytes, writer), partial(_is_gone, writer))
        except asyncio.LimitOverrunError:
            await answers.end()
            writer.write(f"error: a request must be at most {CONTROL_REQUEST_BYTES.bound} bytes\n".encode())
        finally:
            packets.leave()
            try:
                await answers.end()
            finally:
                await subscription.end()
                writer.close()
                del conversations[asyncio.current_task()]

    server = await asyncio.start_unix_server(converse, sock=listener, limit=CONTROL_REQUEST_BYTES.bound)
    try:
        yield
    finally:
        server.close()
        for writer in conversations.values():
            writer.transport.abort()
        await asyncio.gather(*(task for task in conversations if task), return_exceptions=True)
        await asyncio.to_thread(path.unlink, missing_ok=True)


async def _send_line(writer: asyncio.StreamWriter, text: str) -> None:
    writer.write(f"{text}\n".encode())
    await writer.drain()


async def _send_bytes(writer: asyncio.StreamWriter, data: bytes | memoryview) -> None:
    writer.write(data)
    await writer.drain()


def _is_gone(writer: asyncio.StreamWriter) -> bool:
    """Whether the client has closed its socket; one that has only ended its own direction still reads."""
    connection = writer.get_extra_info("socket")
    if writer.is_closing() or connection is None or connection.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), 0)  # a hang-up and errors are always reported
    return bool(poll.poll(0))


def _answer(running: RunningRig, line: str, subscriber: Subscriber) -> tuple[Coroutine[None, None, str], Order]:
    """Coroutine that executes the request in a line and returns the answer, and the request's order among others."""
    if not line.lstrip().startswith("{"):
        return _answer_words(running, line), Order.ALONE
    try:
        request = parse_request(line)
    except HilsimError as error:
        return known(refusal(str(error))), Order.ALONE
    return answer_parsed(running, request, subscriber), order_of(request)


async def _answer_words(running: RunningRig, line: str) -> str:
    try:
        CONTROL_LINE_BYTES.enforce(len(line), "the control socket", ConfigError)
        return obey(running, line)
    except HilsimError as error:
        return f"error: {error}"


def _listen(path: Path) -> socket.socket:
    """Create a socket at a path that only this user can open.

    Raises:
        TransmitError: the socket cannot be created, or the path is in use.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_abandoned(path)
        listener.bind(str(path))
        path.chmod(0o600)  # no client can connect before it listens
    except OSError as error:
        listener.close()
        raise TransmitError(f"the control socket must be a path that can be created, got {path}: {error.strerror or error}") from error
    except TransmitError:
        listener.close()
        raise
    return listener


def _remove_abandoned(path: Path) -> None:
    """Remove the socket that an ended daemon has left; leave other files and used sockets."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_S)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except TimeoutError:
            pass
    raise TransmitError(f"the control socket must belong to one daemon only, got {path}, where another one listens")
