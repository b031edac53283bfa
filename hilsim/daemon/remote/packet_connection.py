"""One connection that carries the packets that were sent, as a PCAP stream."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hilsim.capture.pcap import pcap_file_header
from hilsim.daemon.running_rig import RunningRig
from hilsim.errors import ConfigError

if TYPE_CHECKING:
    from hilsim.capture.sinks.pcap_streams import StreamClient

_LOOK_S = 1.0
"""Longest time between two checks whether the client is still there."""


class PacketConnection:
    """A client of the sent packets. It joins, its connection sends the answer, and then ``stream`` sends packets.

    Attributes:
        has_joined: Whether the connection belongs to packets now.
    """

    def __init__(self, running: RunningRig) -> None:
        """Create a connection that has not joined."""
        self._running = running
        self._client: StreamClient | None = None
        self._come = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @property
    def has_joined(self) -> bool:
        """Whether the connection belongs to packets now."""
        return self._client is not None

    def join(self) -> dict[str, Any]:
        """Follow the sent packets from now on; returns the keys of the answer.

        Raises:
            ConfigError: there are too many clients, or the rig ends.
        """
        live = self._running.live_packets
        if live is None:
            raise ConfigError("packets must be asked for while packets flow")
        if self._client is None:
            self._client = live.connect(self._wake)
        return {"client": self._client.number, "format": "pcap", "epoch_ns": self._running.epoch_ns, "utc_epoch_ns": self._running.utc_epoch_ns}

    async def stream(self, send: Callable[[bytes | memoryview], Awaitable[None]], is_gone: Callable[[], bool]) -> None:
        """Send a capture until the client is gone or the task is cancelled.

        Args:
            send: Function that sends bytes, and returns when there is room for more.
            is_gone: Function that finds out whether the client is gone.
        """
        client = self._client
        if client is None:
            return
        with suppress(ConnectionError):
            await send(pcap_file_header())
            while not is_gone():
                self._come.clear()
                while (chunk := client.take()) is not None:
                    await send(chunk)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self._come.wait()

    def leave(self) -> None:
        """Stop following; leaving again does nothing."""
        client, self._client = self._client, None
        live = self._running.live_packets
        if client is not None and live is not None:
            live.disconnect(client)

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._come.set)
