"""Supervision of tasks beside the stream, so that their errors do not end it."""

import asyncio
from collections.abc import Callable, Coroutine

import structlog

log = structlog.get_logger("hilsim")

_AGAIN_S = 1.0


async def guarded(name: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run a task beside the stream until it is done or cancelled; an error in it is logged with its traceback, and the task is restarted.

    Args:
        name: Name of the task in the log.
        work: Function that makes the coroutine for each start.
    """
    while True:
        try:
            await work()
        except Exception:
            log.exception("helper.failed", helper=name, consequence="it is restarted; packets are not affected")
            await asyncio.sleep(_AGAIN_S)
        else:
            return
