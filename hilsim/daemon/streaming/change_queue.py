"""Changes of a script and of clients that wait for their rig times; a worker thread makes each, in the order of their times."""

import asyncio
import heapq
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import structlog

from hilsim.config.script import ChangeSpec
from hilsim.daemon.parts import Changes, MadeChange, RigClock
from hilsim.daemon.streaming.changer import Changer, PreparedChange
from hilsim.emulator.lidar import LidarEmulator
from hilsim.errors import ConfigError, HilsimError, TransmitError
from hilsim.limits import WAITING_CHANGES
from hilsim.telemetry.guarded import guarded

log = structlog.get_logger("hilsim")

_AHEAD_NS = 50_000_000
"""Time from publishing a change to its rig time, longer than a worker thread waits for the GIL. It also delays other changes."""
_PREPARED_AHEAD_NS = 1_000_000_000
"""Time from preparing a change to its rig time."""
_LONGEST_SLEEP_S = 0.5
_ENDS = "the rig must run until a change is made, but it ends"


@dataclass(order=True, kw_only=True)
class _Waiting:
    at_ns: int
    number: int
    change: ChangeSpec = field(compare=False)
    made: "asyncio.Future[MadeChange] | None" = field(compare=False)
    prepared: PreparedChange | None = field(default=None, compare=False)
    was_prepared: bool = field(default=False, compare=False)


class ChangeQueue(Changes):
    """Queue of a rig's changes that wait for their times."""

    def __init__(self, changer: Changer) -> None:
        """Create a queue for ``changer``."""
        super().__init__()
        self._changer = changer
        self._waiting: list[_Waiting] = []
        self._count = 0
        self._asked = 0  # waiting changes of clients; those of a script are not limited
        self._news = asyncio.Event()
        self._has_ended = False

    def lidar(self, name: str) -> tuple[LidarEmulator, bool]:
        """As the changer gives it."""
        return self._changer.lidar(name)

    def add_script(self, changes: Sequence[ChangeSpec]) -> None:
        """Add the changes of a script."""
        for change in changes:
            self._push(change, None)

    async def make(self, change: ChangeSpec) -> MadeChange:
        """Make a change at its time, or now; returns when packets contain it."""
        if self._has_ended:
            raise TransmitError(_ENDS)
        WAITING_CHANGES.enforce(self._asked + 1, "the rig", ConfigError)
        earliest_ns = self._changer.earliest_ns(self.clock)
        if change.at_ns is not None and change.at_ns < earliest_ns:
            raise ConfigError(f"at_s must be {earliest_ns / 1e9:.6f} or later now, got {change.at_s}")
        made: asyncio.Future[MadeChange] = asyncio.get_running_loop().create_future()
        self._push(change, made)
        self._asked += 1
        try:
            return await made
        finally:
            self._asked -= 1

    def _push(self, change: ChangeSpec, made: "asyncio.Future[MadeChange] | None") -> None:
        at_ns = -1 if change.at_ns is None else change.at_ns
        heapq.heappush(self._waiting, _Waiting(at_ns=at_ns, number=self._count, change=change, made=made))
        self._count += 1
        self._news.set()

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Make changes at their times while the block runs, once the rig has started."""
        task = asyncio.create_task(guarded("changes", self._run), name="changes")
        try:
            yield
        finally:
            self._has_ended = True
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            for waiting in self._waiting:
                if waiting.made is not None and not waiting.made.done():
                    waiting.made.set_exception(TransmitError(_ENDS))

    async def _run(self) -> None:
        clock = await self.begun()
        while True:
            while not self._waiting:
                self._news.clear()
                await self._news.wait()
            first = self._waiting[0]
            wait_s = 0.0 if first.at_ns < 0 else (first.at_ns - self._changer.earliest_ns(clock) - _AHEAD_NS) / 1e9  # to its worker thread
            if 0.0 < wait_s < _PREPARED_AHEAD_NS / 1e9 and not first.was_prepared:
                await self._prepare(first)
                continue
            if wait_s > 0.0:
                self._news.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), min(max(wait_s - _PREPARED_AHEAD_NS / 1e9, 0.001), wait_s, _LONGEST_SLEEP_S))
                continue
            await self._make(heapq.heappop(self._waiting), clock)

    async def _prepare(self, waiting: _Waiting) -> None:
        """Prepare a change. An error is ignored: ``_make`` reports it at the change's time, because another change may come before."""
        waiting.was_prepared = True
        with suppress(HilsimError):
            waiting.prepared = await asyncio.to_thread(self._changer.prepare, waiting.change)

    async def _make(self, waiting: _Waiting, clock: RigClock) -> None:
        begun_s = time.monotonic()
        try:
            is_scheduled, is_scripted = waiting.at_ns >= 0, waiting.made is None
            made = await asyncio.to_thread(
                self._changer.make, waiting.change, clock, is_scheduled=is_scheduled, is_scripted=is_scripted, prepared=waiting.prepared
            )
        except HilsimError as error:
            if waiting.made is None:
                log.error("rig.change_refused", kind=waiting.change.kind, at_s=waiting.change.at_s, reasons=str(error).split("\n"))  # noqa: TRY400 - not an error of this program
            elif not waiting.made.done():
                waiting.made.set_exception(error)
            return
        except BaseException:  # an error of this program, which the guard logs, or the end of the rig
            if waiting.made is not None and not waiting.made.done():
                waiting.made.set_exception(
                    TransmitError(f"a change must be made without an error of the daemon, got one: see its log ({waiting.change.kind})")
                )
            raise
        log.info("rig.changed", kind=made.change.kind, at_s=made.change.at_s, took_s=round(time.monotonic() - begun_s, 4))
        if waiting.made is not None and not waiting.made.done():
            waiting.made.set_result(made)
