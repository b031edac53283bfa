"""TCP server of an Ouster's commands in words (``families.ouster.interface.commands``): lines in, lines out."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from hilsim.families.ouster.daemon.sensor import OusterSensor
from hilsim.limits import SENSOR_CONNECTIONS, SENSOR_IDLE_S, SENSOR_LINE_BYTES
from hilsim.telemetry.allowance import Allowance

_COMMANDS_A_SECOND = 100


@asynccontextmanager
async def serve_lines(sensor: OusterSensor, listening: socket.socket) -> AsyncIterator[None]:
    """Answer commands to a sensor, at a socket that listens at its address, while the block runs."""
    server = LineServer(sensor)
    listener = await asyncio.start_server(server.serve, sock=listening, limit=SENSOR_LINE_BYTES.bound)
    try:
        yield
    finally:
        listener.close()
        await server.close()


class LineServer:
    """Server of one sensor, with a bounded number of connections."""

    def __init__(self, sensor: OusterSensor) -> None:
        self._sensor = sensor
        self._serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._allowance = Allowance(most=_COMMANDS_A_SECOND)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection until it ends."""
        task = asyncio.current_task()
        if task is None:
            raise AssertionError("asyncio serves each connection in a task")
        try:
            if not self._sensor.answers():
                return
            if len(self._serving) >= SENSOR_CONNECTIONS.bound:
                writer.write(f"error: there must be at most {SENSOR_CONNECTIONS.text} connections\n".encode())
                return
            self._serving[task] = writer
            peer = str(writer.get_extra_info("peername")[0])
            with suppress(TimeoutError, ConnectionError):
                await self._answer(reader, writer, peer)
        finally:
            self._serving.pop(task, None)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str) -> None:
        while True:
            try:
                async with asyncio.timeout(SENSOR_IDLE_S.bound):
                    line = await reader.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return
            except asyncio.LimitOverrunError:
                writer.write(f"error: a line must be at most {SENSOR_LINE_BYTES.text}, got more\n".encode())
                return
            if not self._allowance.take():
                writer.write(f"error: there must be at most {_COMMANDS_A_SECOND} commands a second\n".encode())
                return
            answer = await self._sensor.command(line.decode("utf-8", "replace"), peer)
            writer.write(f"{answer}\n".encode())
            async with asyncio.timeout(SENSOR_IDLE_S.bound):
                await writer.drain()

    async def close(self) -> None:
        """End all connections, once a command that is executed has been."""
        serving = dict(self._serving)
        for writer in serving.values():
            writer.transport.abort()
        await asyncio.gather(*serving)
