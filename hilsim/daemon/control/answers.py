"""Answers over one connection, in the order of the requests, whose client need not wait for them.

Changes that follow each other wait for their rig times together, and are made without a round trip between them. Every other request waits until all before
it have been answered, so that its answer shows what they did; so does a change that is to begin at once, behind one that has a rig time.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hilsim.limits import UNANSWERED_CHANGES


class Order(Enum):
    """Order of a request among others: the requests that it waits for."""

    ALONE = "all requests before it"
    AT_ONCE = "requests before it that are no changes at once"
    TIMED = "requests before it that are no changes"


def order_of(request: Mapping[str, Any]) -> Order:
    """Order of a request among others."""
    change = request.get("change")
    if request.get("do") != "change" or not isinstance(change, dict):
        return Order.ALONE
    return Order.AT_ONCE if change.get("at_s") is None else Order.TIMED


async def known(text: str) -> str:
    """Return an answer that is known."""
    return text


@dataclass(kw_only=True, eq=False)
class Answers:
    """Sends the answers of one connection.

    Attributes:
        send: Function that sends an answer.
        transport: Transport of the connection, which is closed if its client does not take an answer.
    """

    send: Callable[[str], Awaitable[None]]
    transport: asyncio.WriteTransport
    _waiting: deque[asyncio.Task[str]] = field(default_factory=deque, init=False)
    _sent: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _sender: asyncio.Task[None] | None = field(default=None, init=False)
    _has_timed: bool = field(default=False, init=False)

    async def give(self, answer: Coroutine[Any, Any, str], order: Order) -> None:
        """Answer the next request; returns when another one may be read.

        Args:
            answer: Coroutine that executes the request and returns the answer.
            order: Order of the request.
        """
        if order is Order.ALONE or (order is Order.AT_ONCE and self._has_timed):
            try:
                await self.end()
            except BaseException:
                answer.close()
                raise
        if order is Order.ALONE:
            await self.send(await answer)
            return
        self._has_timed |= order is Order.TIMED
        self._waiting.append(asyncio.create_task(answer, name="control-change"))
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send_all(), name="control-answers")
        while len(self._waiting) >= UNANSWERED_CHANGES.bound:
            self._sent.clear()
            await self._sent.wait()

    async def end(self) -> None:
        """Return when every answer has been sent."""
        if self._sender is not None:
            await self._sender
        self._has_timed = False

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                text = await self._waiting[0]
                self._waiting.popleft()
                self._sent.set()
                await self.send(text)
        except (ConnectionError, TimeoutError):
            self.transport.abort()
            await asyncio.gather(*self._waiting)  # what has been asked for is done all the same
        finally:
            for task in self._waiting:
                task.cancel()
            self._waiting.clear()
            self._sent.set()
