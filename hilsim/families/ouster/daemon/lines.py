"""Commands in words to an Ouster (``families.ouster.interface.commands``) at its TCP port: lines in, lines out."""

import asyncio
import socket
from contextlib import AbstractAsyncContextManager

from hilsim.daemon.interfaces.connections import Exchange, serve_connections
from hilsim.families.ouster.daemon.sensor import OusterSensor
from hilsim.limits import SENSOR_LINE_BYTES


def serve_lines(sensor: OusterSensor, listening: socket.socket) -> AbstractAsyncContextManager[None]:
    """Answer commands to a sensor, at a socket that listens at its address, while the block runs."""

    async def answer(line: str, peer: str) -> bytes:
        return f"{await sensor.command(line, peer)}\n".encode()

    return serve_connections(Exchange(_read, answer, _fault, sensor.answers), listening, longest=SENSOR_LINE_BYTES.bound)


async def _read(reader: asyncio.StreamReader) -> str:
    try:
        line = await reader.readuntil(b"\n")
    except asyncio.LimitOverrunError:
        raise ValueError(f"a line must be at most {SENSOR_LINE_BYTES.text}, got more") from None
    return line.decode("utf-8", "replace")


def _fault(reason: str) -> bytes:
    return f"error: {reason}\n".encode()
