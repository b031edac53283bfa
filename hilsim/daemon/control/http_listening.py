"""Port for requests over HTTP. It is opened before the first packet is sent; the server is imported while packets flow, and clients wait meanwhile."""

import asyncio
import importlib
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from hilsim.config.rig import ControlSpec
from hilsim.daemon.control.token_file import Token, read_or_make_token
from hilsim.daemon.running_rig import RunningRig
from hilsim.errors import TransmitError
from hilsim.telemetry.guarded import guarded

log = structlog.get_logger("hilsim")

_BACKLOG = 16
_SEND_BUFFER_BYTES = 1 << 18
"""Size of the kernel's send buffer for a client that does not read."""


@asynccontextmanager
async def serve_http(running: RunningRig, spec: ControlSpec, directory: Path) -> AsyncIterator[tuple[str, int] | None]:
    """Answer requests over HTTP and WebSocket while the block runs; yields address and port, or None if the rig has no ``http``.

    Args:
        running: Running rig.
        spec: Settings with the address and the token's file.
        directory: Directory to which the file's path is relative.

    Raises:
        ConfigError: the file of the token cannot be used.
        TransmitError: the port cannot be opened.
    """
    if not spec.http:
        yield None
        return
    place = directory / spec.token_file
    token = Token(await asyncio.to_thread(read_or_make_token, place))
    with _listen(spec) as listening:
        address, port, *_ = listening.getsockname()
        task = asyncio.create_task(guarded("control-http", lambda: _serve(running, token, listening)), name="control-http")
        log.info("control.listening", address=f"http://{spec.http.rpartition(':')[0]}:{port}", token_file=str(place))
        try:
            yield address, port
        finally:
            task.cancel()
            await asyncio.wait({task})


async def _serve(running: RunningRig, token: Token, listening: socket.socket) -> None:
    await asyncio.to_thread(importlib.import_module, "hilsim.daemon.control.http_server")
    from hilsim.daemon.control.http_server import serve_requests  # noqa: PLC0415 - slow to import: aiohttp

    async with serve_requests(running, token, listening):
        await asyncio.Event().wait()


def _listen(spec: ControlSpec) -> socket.socket:
    host, port = spec.http_endpoint
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise TransmitError(f"control.http must be a free port of this host, got {spec.http}: {reason}") from error
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)  # connections inherit it
    return listening
