"""TCP server of a sensor's requests: a bounded number of connections, each with one request after the other."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Generic, NamedTuple, TypeVar

from hilsim.limits import CONTROL_COMMANDS_A_SECOND, SENSOR_CONNECTIONS, SENSOR_IDLE_S
from hilsim.telemetry.allowance import Allowance

RequestT = TypeVar("RequestT")


class Exchange(NamedTuple, Generic[RequestT]):
    """Requests and answers of a family.

    Attributes:
        read: Function that reads the next request; ValueError with a reason: there is none in what it read.
        answer: Function that answers a request of a client with this address.
        fault: Function that gives the last bytes before a connection is closed, of the reason.
        answers: Whether the sensor answers; while it does not, connections are closed.
        idle_s: Time between two requests after which a connection is closed; None: never.
    """

    read: Callable[[asyncio.StreamReader], Awaitable[RequestT]]
    answer: Callable[[RequestT, str], Awaitable[bytes]]
    fault: Callable[[str], bytes]
    answers: Callable[[], bool]
    idle_s: float | None = SENSOR_IDLE_S.bound


@asynccontextmanager
async def serve_connections(exchange: Exchange[RequestT], listening: socket.socket, *, longest: int) -> AsyncIterator[None]:
    """Answer requests of at most ``longest`` bytes, at a socket that listens, while the block runs."""
    server = _Server(exchange)
    listener = await asyncio.start_server(server.serve, sock=listening, limit=longest)
    try:
        yield
    finally:
        listener.close()
        await server.close()


class _Server(Generic[RequestT]):
    def __init__(self, exchange: Exchange[RequestT]) -> None:
        self._exchange = exchange
        self._serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._allowance = Allowance(most=CONTROL_COMMANDS_A_SECOND.bound)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection until it ends."""
        task = asyncio.current_task()
        if task is None:
            raise AssertionError("asyncio serves each connection in a task")
        try:
            if not self._exchange.answers():
                return
            if len(self._serving) >= SENSOR_CONNECTIONS.bound:
                writer.write(self._exchange.fault(f"there must be at most {SENSOR_CONNECTIONS.text} connections"))
                return
            self._serving[task] = writer
            peer = str(writer.get_extra_info("peername")[0])
            with suppress(TimeoutError, ConnectionError, asyncio.IncompleteReadError):
                await self._converse(reader, writer, peer)
        finally:
            self._serving.pop(task, None)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str) -> None:
        exchange = self._exchange
        while True:
            try:
                async with asyncio.timeout(exchange.idle_s):
                    request = await exchange.read(reader)
            except ValueError as error:
                writer.write(exchange.fault(str(error)))
                return
            if not exchange.answers():
                return
            if not self._allowance.take():
                writer.write(exchange.fault(f"there must be at most {CONTROL_COMMANDS_A_SECOND.bound} {CONTROL_COMMANDS_A_SECOND.subject}"))
                return
            writer.write(await exchange.answer(request, peer))
            async with asyncio.timeout(SENSOR_IDLE_S.bound):
                await writer.drain()

    async def close(self) -> None:
        """End all connections, once a request that is executed has been."""
        serving = dict(self._serving)
        for writer in serving.values():
            writer.transport.abort()
        await asyncio.gather(*serving)
