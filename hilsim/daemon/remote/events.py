"""Events for connections that subscribe to the state of the rig at an interval.

An event that a connection cannot accept at once is skipped: at most one waits to be sent, and a connection that reads nothing for 10 s is closed.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hilsim.daemon.control_requests import NO_PACKETS, state_answer
from hilsim.daemon.running_rig import RunningRig
from hilsim.errors import ConfigError
from hilsim.limits import SUBSCRIBER_STALLED_S
from hilsim.telemetry.guarded import guarded

_SHARED_S = 0.02
"""Age up to which an event is reused for other subscribers, so that counters are read at most fifty times a second."""
_LOOK_S = 0.5
"""Longest time between two checks of how much a connection has accepted."""


class StateEvents:
    """Maker of the events of a rig, once for all subscribers."""

    def __init__(self, running: RunningRig) -> None:
        """Make events of ``running``."""
        self._running = running
        self._making = asyncio.Lock()
        self._made_s = float("-inf")
        self._text = ""

    async def text(self) -> str:
        """Present state as JSON."""
        async with self._making:
            if time.monotonic() - self._made_s > _SHARED_S:
                self._text = await asyncio.to_thread(self._make)
                self._made_s = time.monotonic()
            return self._text

    def _make(self) -> str:
        return json.dumps({"event": "state", **state_answer(self._running)})


@dataclass(kw_only=True, eq=False)
class Progress:
    """Check whether the reader of a connection makes progress.

    Attributes:
        transport: Transport of the connection.
        now_s: Clock in seconds.
    """

    transport: asyncio.WriteTransport
    now_s: Callable[[], float] = time.monotonic
    _waiting_bytes: int = field(default=0, init=False)
    _gone_on_s: float = field(default=float("-inf"), init=False)

    def is_stalled(self) -> bool:
        """Whether the reader has read nothing of the waiting bytes for 10 s."""
        waiting_bytes = self.transport.get_write_buffer_size()
        if waiting_bytes == 0 or waiting_bytes < self._waiting_bytes or self._waiting_bytes == 0:
            self._gone_on_s = self.now_s()
        self._waiting_bytes = waiting_bytes
        return self.now_s() - self._gone_on_s > SUBSCRIBER_STALLED_S.bound


@dataclass(kw_only=True, eq=False)
class Subscription:
    """Subscription of one connection to events.

    Attributes:
        events: Source of the events.
        send: Function that sends a text.
        transport: Transport of the connection.
        join_packets: Function that makes the connection carry sent packets; None: it cannot.
    """

    events: StateEvents
    send: Callable[[str], Awaitable[None]]
    transport: asyncio.WriteTransport
    join_packets: Callable[[], dict[str, Any]] | None = None
    _task: asyncio.Task[None] | None = field(default=None, init=False)

    def subscribe(self, every_s: float) -> None:
        """Start sending the state at an interval, which replaces an earlier interval."""
        self.unsubscribe()
        self._task = asyncio.create_task(guarded("control-events", lambda: self._run(every_s)), name="control-events")

    def unsubscribe(self) -> None:
        """Stop sending events."""
        if self._task is not None:
            self._task.cancel()

    def follow_packets(self) -> dict[str, Any]:
        """Make the connection carry sent packets after the answer, and no events; returns the keys of the answer.

        Raises:
            ConfigError: the connection cannot carry them.
        """
        if self.join_packets is None:
            raise ConfigError(NO_PACKETS)
        self.unsubscribe()
        return self.join_packets()

    async def end(self) -> None:
        """Stop sending events; returns when the last one has been sent."""
        self.unsubscribe()
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _run(self, every_s: float) -> None:
        progress = Progress(transport=self.transport)
        next_s = time.monotonic()
        with suppress(ConnectionError):
            while not self.transport.is_closing():
                if progress.is_stalled():
                    self.transport.abort()
                    return
                now_s = time.monotonic()
                if now_s >= next_s:
                    next_s += every_s * (1 + (now_s - next_s) // every_s)
                    if self.transport.get_write_buffer_size() == 0:
                        await self._send(await self.events.text())
                await asyncio.sleep(min(max(next_s - time.monotonic(), 0.0), _LOOK_S))

    async def _send(self, text: str) -> None:
        try:
            async with asyncio.timeout(SUBSCRIBER_STALLED_S.bound):
                await self.send(text)
        except TimeoutError:
            self.transport.abort()
