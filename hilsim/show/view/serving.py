"""Run of the live view: the gate at once, then the feed and the page behind it."""

import asyncio
import signal
import threading
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hilsim.show.view.page.server import private_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    import viser

    from hilsim.api.control import Control
    from hilsim.editing.session import EditSession
    from hilsim.show.view.feed.base import Feed
    from hilsim.show.view.gate import Gate


@asynccontextmanager
async def server_beside(label: str) -> "AsyncIterator[tuple[viser.ViserServer, Path]]":
    """``private_server``, started and stopped beside the event loop: its last messages pass the gate, which runs there."""
    stack = ExitStack()
    try:
        yield await asyncio.to_thread(stack.enter_context, private_server(label))
    finally:
        await asyncio.to_thread(stack.close)


async def serve_view(
    gate: "Gate", open_feed: "Callable[[], Feed]", control: "Control | None" = None, open_session: "Callable[[], EditSession | None] | None" = None
) -> None:
    """Serve the page until SIGINT or SIGTERM.

    Args:
        gate: Gate, which answers from the beginning on.
        open_feed: Opener of the source; it may take seconds.
        control: Client of the daemon, for its replays.
        open_session: Opener of an editing session of the daemon's rig; it may take seconds.

    Raises:
        HilsimError: the source cannot be opened.
    """
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with gate.serve(), server_beside("hilsim view") as (server, path):
        opening = asyncio.create_task(asyncio.to_thread(open_feed))
        await asyncio.wait([opening, asyncio.create_task(stopped.wait())], return_when=asyncio.FIRST_COMPLETED)
        if stopped.is_set() and not opening.done():
            return
        feed = opening.result()
        try:
            session = await asyncio.to_thread(open_session) if open_session is not None else None
            await _show(gate, server, path, feed, control, session, stopped)
        finally:
            await asyncio.to_thread(feed.close)


async def _show(
    gate: "Gate",
    server: "viser.ViserServer",
    path: Path,
    feed: "Feed",
    control: "Control | None",
    session: "EditSession | None",
    stopped: asyncio.Event,
) -> None:
    from hilsim.show.view.page.page import Page  # noqa: PLC0415 - imports what reads points

    page = await asyncio.to_thread(Page, server, feed, (), control, session)
    gate.open_to(path)
    ended = threading.Event()
    running = asyncio.create_task(asyncio.to_thread(page.run, ended))
    try:
        await asyncio.wait([running, asyncio.create_task(stopped.wait())], return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended.set()
        await running
