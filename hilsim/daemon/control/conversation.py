"""A connection that takes request after request, and can receive events and packets, whatever listener it came to.

A client need not wait for answers; they come in the order of the requests. Changes that follow each other wait for their rig times together, and are made
without a round trip between them. Every other request waits until all before it have been answered, so that its answer shows what they did; so does a change
that is to begin at once, behind one that has a rig time.

An event that a connection cannot accept at once is skipped: at most one waits to be sent, and a connection that reads nothing for 10 s is closed.
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hilsim.capture.pcap import pcap_file_header
from hilsim.daemon.control.requests import NO_PACKETS, answer, state_answer
from hilsim.daemon.running_rig import RunningRig
from hilsim.errors import ConfigError
from hilsim.limits import SUBSCRIBER_STALLED_S, UNANSWERED_CHANGES
from hilsim.telemetry.guarded import guarded

if TYPE_CHECKING:
    from hilsim.capture.sinks.pcap_streams import StreamClient

_SHARED_S = 0.02
"""Age up to which an event is reused for other subscribers, so that counters are read at most fifty times a second."""
_LOOK_S = 0.5
"""Longest time between two checks of how much a connection has accepted."""
_LOOK_PACKETS_S = 1.0
"""Longest time between two checks whether a client of packets is still there."""


class StateEvents:
    """Maker of the events of a rig, once for all subscribers."""

    def __init__(self, running: RunningRig) -> None:
        """Make events of ``running``."""
        self.running = running
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
        return json.dumps({"event": "state", **state_answer(self.running)})


class Conversation:
    """Requests of one connection, with their answers in order, its subscription and its packets.

    Attributes:
        has_packets: Whether the connection belongs to packets now, and takes no further request.
    """

    def __init__(
        self, events: StateEvents, send: Callable[[str], Awaitable[None]], transport: asyncio.WriteTransport, *, carries_packets: bool
    ) -> None:
        """Create a conversation.

        Args:
            events: Source of the events of the rig.
            send: Function that sends a text.
            transport: Transport of the connection.
            carries_packets: Whether the connection can carry packets.
        """
        self._events, self._send, self._transport, self._carries_packets = events, send, transport, carries_packets
        self._running = events.running
        self._changes: deque[asyncio.Task[str]] = deque()
        self._has_timed = False
        self._answered = asyncio.Event()
        self._sending_answers: asyncio.Task[None] | None = None
        self._sending_events: asyncio.Task[None] | None = None
        self._sending_packets: asyncio.Task[None] | None = None
        self._client: StreamClient | None = None
        self._come = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @property
    def has_packets(self) -> bool:
        """Whether the connection belongs to packets now."""
        return self._client is not None

    async def take(self, request: Mapping[str, Any], write: Callable[[Mapping[str, Any]], str] = json.dumps) -> None:
        """Answer the next request; returns when another one may be taken.

        Args:
            request: Request.
            write: Function that makes the text of its answer.
        """
        change = request.get("change") if request.get("do") == "change" else None
        is_change = isinstance(change, dict)
        is_timed = isinstance(change, dict) and change.get("at_s") is not None
        if not is_change or (self._has_timed and not is_timed):
            await self._answer_all()
        if not is_change:
            await self._send(await self._answer(request, write))
            return
        self._has_timed |= is_timed
        self._changes.append(asyncio.create_task(self._answer(request, write), name="control-change"))
        if self._sending_answers is None or self._sending_answers.done():
            self._sending_answers = asyncio.create_task(self._send_answers(), name="control-answers")
        while len(self._changes) >= UNANSWERED_CHANGES.bound:
            self._answered.clear()
            await self._answered.wait()

    async def _answer(self, request: Mapping[str, Any], write: Callable[[Mapping[str, Any]], str]) -> str:
        return write(await answer(self._running, request, self))

    async def refuse(self, text: str) -> None:
        """Answer the next request by a text."""
        await self._answer_all()
        await self._send(text)

    async def _answer_all(self) -> None:
        """Return when every change has been answered."""
        if self._sending_answers is not None:
            await self._sending_answers
        self._has_timed = False

    async def _send_answers(self) -> None:
        try:
            while self._changes:
                text = await self._changes[0]
                self._changes.popleft()
                self._answered.set()
                await self._send(text)
        except (ConnectionError, TimeoutError):
            self._transport.abort()
            await asyncio.gather(*self._changes)  # what has been asked for is done all the same
        finally:
            for task in self._changes:
                task.cancel()
            self._changes.clear()
            self._answered.set()

    async def end(self) -> None:
        """Leave packets and stop events; returns when every answer has been sent."""
        self._leave()
        try:
            await self._answer_all()
        finally:
            tasks = {task for task in (self._sending_events, self._sending_packets) if task is not None}
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    # -- events ------------------------------------------------------------------------------------------------------------------------

    def subscribe(self, every_s: float) -> None:
        """Start sending the state at an interval, which replaces an earlier interval."""
        self.unsubscribe()
        self._sending_events = asyncio.create_task(guarded("control-events", lambda: self._send_events(every_s)), name="control-events")

    def unsubscribe(self) -> None:
        """Stop sending events."""
        if self._sending_events is not None:
            self._sending_events.cancel()

    async def _send_events(self, every_s: float) -> None:
        next_s = progress_s = time.monotonic()
        before_bytes = 0
        with suppress(ConnectionError):
            while not self._transport.is_closing():
                now_s, waiting_bytes = time.monotonic(), self._transport.get_write_buffer_size()
                if before_bytes == 0 or waiting_bytes < before_bytes:
                    progress_s = now_s
                elif now_s - progress_s > SUBSCRIBER_STALLED_S.bound:
                    self._transport.abort()
                if now_s >= next_s:
                    next_s += every_s * (1 + (now_s - next_s) // every_s)
                    if waiting_bytes == 0:
                        await self._send_event(await self._events.text())
                before_bytes = waiting_bytes
                await asyncio.sleep(min(max(next_s - time.monotonic(), 0.0), _LOOK_S))

    async def _send_event(self, text: str) -> None:
        try:
            async with asyncio.timeout(SUBSCRIBER_STALLED_S.bound):
                await self._send(text)
        except TimeoutError:
            self._transport.abort()

    # -- packets -----------------------------------------------------------------------------------------------------------------------

    def follow_packets(self) -> dict[str, Any]:
        """Follow the sent packets from now on, and send no events; returns the keys of the answer.

        Raises:
            ConfigError: the connection cannot carry them, there are too many clients, or no packets flow.
        """
        if not self._carries_packets:
            raise ConfigError(NO_PACKETS)
        self.unsubscribe()
        live = self._running.live_packets
        if live is None:
            raise ConfigError("packets must be asked for while packets flow")
        if self._client is None:
            self._client = live.connect(self._wake)
        clock = self._running.clock
        return {"client": self._client.number, "format": "pcap", "epoch_ns": clock.epoch_ns, "utc_epoch_ns": clock.utc_epoch_ns}

    def begin_packets(self, send: Callable[[bytes | memoryview], Awaitable[None]], is_gone: Callable[[], bool]) -> asyncio.Task[None]:
        """Begin to send a capture; returns the task, which ends when the client is gone.

        Args:
            send: Function that sends bytes, and returns when there is room for more.
            is_gone: Function that finds out whether the client is gone.
        """
        self._sending_packets = asyncio.create_task(self._send_packets(send, is_gone), name="control-packets")
        return self._sending_packets

    async def _send_packets(self, send: Callable[[bytes | memoryview], Awaitable[None]], is_gone: Callable[[], bool]) -> None:
        if self._sending_events is not None:
            await asyncio.wait({self._sending_events})
        with suppress(ConnectionError):
            await send(pcap_file_header())
            while not is_gone() and self._client is not None:
                self._come.clear()
                while self._client is not None and (chunk := self._client.take()) is not None:
                    await send(chunk)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_PACKETS_S):
                        await self._come.wait()

    def _leave(self) -> None:
        client, self._client = self._client, None
        if client is not None and (live := self._running.live_packets) is not None:
            live.disconnect(client)

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._come.set)
