"""Requests over a Unix socket that its owner alone can open: one line for each request and each answer, in JSON or in words (``grammar``)."""

import asyncio
import json
import select
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from hilsim.daemon.control.conversation import Conversation, StateEvents
from hilsim.daemon.control.grammar import in_words, is_json, parse_line
from hilsim.daemon.control.requests import refusal
from hilsim.daemon.running_rig import RunningRig
from hilsim.errors import ConfigError, HilsimError, TransmitError
from hilsim.limits import CONTROL_LINE_BYTES, CONTROL_REQUEST_BYTES

_PROBE_S = 1.0


@asynccontextmanager
async def serve_lines(running: RunningRig, path: Path | None) -> AsyncIterator[None]:
    """Answer requests at a Unix socket until the block is left; without a path do nothing.

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
        conversation = Conversation(events, partial(_send_line, writer), writer.transport, carries_packets=True)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await _take_all(conversation, reader)
                if conversation.has_packets:
                    await conversation.begin_packets(partial(_send, writer), partial(_is_gone, writer))
        finally:
            try:
                await conversation.end()
            finally:
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


async def _take_all(conversation: Conversation, reader: asyncio.StreamReader) -> None:
    """Answer requests until the connection belongs to packets, or a line is too long."""
    try:
        while not conversation.has_packets:
            await _take(conversation, (await reader.readuntil()).decode(errors="replace"))
    except asyncio.LimitOverrunError:
        await conversation.refuse(f"error: a request must be at most {CONTROL_REQUEST_BYTES.bound} bytes")


async def _take(conversation: Conversation, line: str) -> None:
    write: Callable[[Mapping[str, Any]], str] = json.dumps if is_json(line) else in_words
    try:
        if write is in_words:
            CONTROL_LINE_BYTES.enforce(len(line), "the control socket", ConfigError)
        request = parse_line(line)
    except HilsimError as error:
        await conversation.refuse(write(refusal(str(error))))
    else:
        await conversation.take(request, write)


async def _send_line(writer: asyncio.StreamWriter, text: str) -> None:
    await _send(writer, f"{text}\n".encode())


async def _send(writer: asyncio.StreamWriter, data: bytes | memoryview) -> None:
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
