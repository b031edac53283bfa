"""Keeps what runs beside the stream from ending it."""

import asyncio
from collections.abc import Callable, Coroutine

import structlog

log = structlog.get_logger("hilsim")

_AGAIN_S = 1.0


async def guarded(name: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
    """Do something beside the stream until it is done or cancelled; an error of this program in it is logged with its traceback, and it begins again.

    Args:
        name: Of the helper, for the log.
        work: Makes the coroutine, anew each time.
    """
    while True:
        try:
            await work()
        except Exception:
            log.exception("helper.failed", helper=name, consequence="it begins again; packets are not affected")
            await asyncio.sleep(_AGAIN_S)
        else:
            return
