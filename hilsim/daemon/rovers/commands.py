"""Commands to rovers: datagrams of one byte, received at one port for each rover."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import asyncio_dgram

from hilsim.telemetry.guarded import guarded

if TYPE_CHECKING:
    from asyncio_dgram.aio import DatagramServer

Obey = Callable[[bytes], object]
"""Function that executes the command in a datagram."""


@asynccontextmanager
async def served_commands(ports: dict[str, tuple[socket.socket, Obey]]) -> AsyncIterator[None]:
    """Receive commands while the block runs.

    Args:
        ports: Bound socket of each rover, which is closed at the end, and the function that takes its datagrams, by the rover's name.
    """
    streams, tasks = [], []
    try:
        for name, (port, obey) in ports.items():
            stream = await asyncio_dgram.from_socket(port)
            streams.append(stream)
            tasks.append(asyncio.create_task(guarded(name, _taking(stream, obey)), name=name))
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in streams:
            stream.close()
        await asyncio.sleep(0)  # the transports close their sockets at the loop's next turn


def _taking(stream: "DatagramServer", obey: Obey) -> Callable[[], Coroutine[None, None, None]]:
    async def take() -> None:
        while True:
            datagram, _ = await stream.recv()
            obey(datagram)

    return take
