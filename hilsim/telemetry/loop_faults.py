"""Logging of errors that asyncio reports outside any task, at a limited rate.

When no file descriptor is left, asyncio (3.11) reports each of up to ``backlog`` failed ``accept`` calls with a traceback, and retries each second: 70 kB of log a second.
"""

import asyncio
import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from hilsim.telemetry.rarely import Rarely

log = structlog.get_logger("hilsim")

_SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class LoopFaults:
    """An exception handler of an event loop."""

    def __init__(self) -> None:
        self._rarely = Rarely()

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log the error; connections that could not be accepted are logged once a minute."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in _SHORTAGES or "accept" not in str(context.get("message", "")):
            loop.default_exception_handler(context)
            return
        if self._rarely.may_report(time.monotonic()):
            advice = "raise the limit of open files (LimitNOFILE), or close what holds them"
            log.warning("connection.not_accepted", reason=error.strerror, suppressed=self._rarely.suppressed, advice=advice)


@contextmanager
def loop_faults_logged() -> Iterator[None]:
    """Send the running loop's errors to hilsim's log while the block runs."""
    loop = asyncio.get_running_loop()
    former = loop.get_exception_handler()
    loop.set_exception_handler(LoopFaults())
    try:
        yield
    finally:
        loop.set_exception_handler(former)
