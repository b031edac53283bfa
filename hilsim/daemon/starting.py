"""Long steps of a start: work in a thread, for which a signal need not wait, and kernels that children compile. Progress is reported every second."""

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
from hilsim.daemon.precompile import about, compile_kernels, is_compiled, is_kept
from hilsim.daemon.stopping import Stopping

log = structlog.get_logger("hilsim")

T = TypeVar("T")

_TELL_S = 1.0
_LOG_S = 10.0
_MORE_TIME_US = 60_000_000
"""Extension requested from the service manager every second; a start without reports counts as hung after this time."""
_GRACE_S = 0.5


class StoppedError(Exception):
    """The daemon was stopped before it had started."""


@dataclass(kw_only=True, eq=False)
class Start:
    """A running start: its reports and its stop.

    Attributes:
        report: Callback for the present step, every second.
        manager: Service manager, which allows more time as long as it gets reports. It gets no ``WATCHDOG=1`` before ``READY=1``:
            the first one arms the watchdog, and a start may be busy for longer than its interval.
        stopping: Request to stop the daemon.
        is_abandoned: Whether a thread still runs, which may hold a socket or file that it was opening.
    """

    report: Callable[[str], None]
    manager: ServiceManager
    stopping: Stopping
    is_abandoned: bool = field(default=False, init=False)

    async def kernels(self, rig: Rig) -> None:
        """Compile a rig's kernels in children, if they are not in the cache.

        Raises:
            StoppedError: the daemon was stopped meanwhile; no child runs any more.
        """
        if is_compiled(rig):
            if not kernel_cache.is_writable() and not is_kept(rig):
                log.warning("kernels.not_kept", consequence="they are compiled now, and at each start, which takes minutes")
            return
        count, total = 0, about(rig)

        def counted(now: int) -> None:
            nonlocal count
            count = now

        log.info(
            "kernels.compiling", kernels_at_most=total, advice="those that the cache lacks; all take half a minute on two idle cores, once a version"
        )
        with self._steps(lambda: f"compiling kernels, once: {count} of at most {max(total, count)}") as waiting:
            failed = await self._until(asyncio.ensure_future(compile_kernels(rig, counted)), waiting)
        if failed:
            log.warning("kernels.child_failed", exit_codes=list(failed), consequence="the daemon compiles missing kernels itself")
        log.info("kernels.compiled", kernels=count)

    async def work(self, step: str, work: Callable[[], None]) -> None:
        """Do long work in a separate thread.

        Raises:
            StoppedError: the daemon was stopped meanwhile. A thread that has not ended half a second later is abandoned (``is_abandoned``).
        """
        with self._steps(lambda: step) as waiting:
            done = in_thread(work, name="start")
            try:
                await self._until(done, waiting)
            except StoppedError:
                await asyncio.wait({done}, timeout=_GRACE_S)
                self.is_abandoned = not done.done()
                raise

    async def pause(self, step: str, left_s: Callable[[], float]) -> None:
        """Wait until ``left_s`` gives 0; it is asked every second, because UTC may be set meanwhile.

        Raises:
            StoppedError: the daemon was stopped meanwhile.
        """
        with self._steps(lambda: step) as waiting:
            while (rest_s := left_s()) > 0.0:
                await self._until(asyncio.ensure_future(asyncio.sleep(min(rest_s, _TELL_S))), waiting)

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
        """Give a function to call every second, which reports the present step and its duration."""
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
    """Run work in a thread for which neither the event loop nor the process waits at its end."""
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
        except BaseException as error:  # noqa: BLE001 - passed to the waiting caller
            found = error
        with suppress(RuntimeError):  # the waiting loop has ended
            loop.call_soon_threadsafe(resolve, found)

    threading.Thread(target=run, name=name, daemon=True).start()
    return done


def log_refused_caches() -> None:
    """Log the reason if kernels are compiled again, or slowly."""
    if reason := unknown_internals():
        log.warning("kernels.compiled_plainly", reason=reason)
    for reason in kernel_cache.refusals:
        log.warning("kernels.cache_refused", reason=reason)
