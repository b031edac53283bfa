"""What a start waits for: work in a thread that a signal need not wait for, and kernels that children compile; progress is reported each second."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import structlog

from hilsim.compilation import cache as kernel_cache
from hilsim.compilation.internals import unknown_internals
from hilsim.config.rig import Rig
from hilsim.daemon.notify import ServiceManager
from hilsim.daemon.precompile import about, compile_kernels, is_compiled
from hilsim.daemon.stopping import Stopping

log = structlog.get_logger("hilsim")

T = TypeVar("T")

_TELL_S = 1.0
_LOG_S = 10.0
_MORE_TIME_US = 60_000_000
"""Asked of the service manager each second: so long after the last word a start counts as hung."""
_GRACE_S = 0.5


class StoppedError(Exception):
    """The daemon was stopped before it had started."""


@dataclass(kw_only=True, eq=False)
class Start:
    """A start under way: whom it reports to, and what ends it.

    Attributes:
        report: Called with what is being done, each second.
        manager: The service manager; it gives more time as long as it gets reports. It is sent no ``WATCHDOG=1`` before ``READY=1``:
            the first one arms the watchdog, and a start may well be busy for longer than its interval.
        stopping: Signals when the daemon is to stop.
        is_abandoned: A thread was left behind that may still hold what it was opening.
    """

    report: Callable[[str], None]
    manager: ServiceManager
    stopping: Stopping
    is_abandoned: bool = field(default=False, init=False)

    async def kernels(self, rig: Rig) -> None:
        """Have a rig's kernels compiled, if they are not in the cache.

        Raises:
            StoppedError: stopped meanwhile; nothing of it is left running.
        """
        if is_compiled(rig):
            return
        count, total = 0, about(rig)

        def counted(now: int) -> None:
            nonlocal count
            count = now

        log.info("kernels.compiling", kernels_about=total, advice="once for this version of hilsim; a minute or two on two idle cores")
        with self._steps(lambda: f"compiling kernels, once: {count} of about {max(total, count)}") as waiting:
            failed = await self._until(asyncio.ensure_future(compile_kernels(rig, counted)), waiting)
        if failed:
            log.warning("kernels.child_failed", exit_codes=list(failed), consequence="what is missing is compiled by the daemon itself")
        log.info("kernels.compiled", kernels=count)

    async def work(self, step: str, work: Callable[[], None]) -> None:
        """Do something that takes long in a thread of its own.

        Raises:
            StoppedError: stopped meanwhile. A thread that has not ended half a second later is left behind (``is_abandoned``).
        """
        with self._steps(lambda: step) as waiting:
            done = in_thread(work, name="start")
            try:
                await self._until(done, waiting)
            except StoppedError:
                await asyncio.wait({done}, timeout=_GRACE_S)
                self.is_abandoned = not done.done()
                raise

    async def _until(self, work: "asyncio.Future[T]", waiting: Callable[[], None]) -> T:
        stopped = asyncio.ensure_future(self.stopping.wait())
        try:
            while not work.done() and not stopped.done():
                waiting()
                both: set[asyncio.Future[Any]] = {work, stopped}
                await asyncio.wait(both, timeout=_TELL_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
        if not work.done():
            if isinstance(work, asyncio.Task):
                work.cancel()
                with suppress(asyncio.CancelledError):
                    await work
            raise StoppedError
        return work.result()

    @contextmanager
    def _steps(self, text: Callable[[], str]) -> Iterator[Callable[[], None]]:
        """A function to call each second, which reports the present step and its duration."""
        began_s = logged_s = time.monotonic()

        def waiting() -> None:
            nonlocal logged_s
            now_s = time.monotonic()
            status = text() if now_s - began_s < _TELL_S else f"{text()}, {now_s - began_s:.0f} s"
            self.report(status)
            self.manager.starting(status, _MORE_TIME_US)
            if now_s - logged_s >= _LOG_S:
                logged_s = now_s
                log.info("daemon.still_preparing", step=status)

        yield waiting


def in_thread(work: Callable[[], None], *, name: str) -> "asyncio.Future[None]":
    """Run something in a thread that neither the event loop's end nor the process's waits for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def resolve(error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        found: BaseException | None = None
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            found = error
        with suppress(RuntimeError):  # the waiting loop has ended
            loop.call_soon_threadsafe(resolve, found)

    threading.Thread(target=run, name=name, daemon=True).start()
    return done


def log_refused_caches() -> None:
    """Log why kernels are compiled again, or slowly, if they are."""
    if reason := unknown_internals():
        log.warning("kernels.compiled_plainly", reason=reason)
    for reason in kernel_cache.refusals:
        log.warning("kernels.cache_refused", reason=reason)
