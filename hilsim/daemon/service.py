"""The daemon: it builds a running rig, runs it in one TaskGroup, and answers signals, metrics requests and the service manager.

Tasks beside the stream (reports, reloads) are guarded: an error there is logged with its traceback and affects no packet.
"""

import asyncio
import contextlib
import gc
import importlib
import logging
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from hilsim.assembly.rig_sources import RigSource, say_hosts, shown
from hilsim.config.part_kind import sees_scene
from hilsim.daemon.control.datagram_server import serve_datagrams
from hilsim.daemon.control.http_listening import serve_http
from hilsim.daemon.control.line_server import serve_lines
from hilsim.daemon.health import HealthReporter
from hilsim.daemon.notify import ServiceManager, watchdog_interval_s
from hilsim.daemon.part_list import listed_parts
from hilsim.daemon.running_rig import RunningRig
from hilsim.daemon.starting import Start, StoppedError, in_thread, log_refused_caches
from hilsim.daemon.stopping import Stopping, signals_handled
from hilsim.daemon.streaming.instant import wait_s
from hilsim.errors import HilsimError, TransmitError
from hilsim.telemetry.guarded import guarded
from hilsim.telemetry.loop_faults import loop_faults_logged
from hilsim.telemetry.metrics_port import listen, metrics_url
from hilsim.telemetry.readings import Reading
from hilsim.transmit.real_time_limit import LONGEST_STRETCH_S, leave_real_time, real_time_limited
from hilsim.version import __version__, foreign_distribution

if TYPE_CHECKING:
    from hilsim.config.rig import Rig

log = structlog.get_logger("hilsim")

_FIRST_PACKET_TIMEOUT_S = 10.0
_STATUS_INTERVAL_S = 0.5
_PACE_INTERVAL_S = 0.5
_GOOD_NEWS = ("rays.restored", "rendering.on_device")
_POLL_S = 0.002
_PLAYED_POLL_S = 0.05
_FIRST_START = "compiles kernels that the cache lacks: half a minute, with a vehicle or on a busy machine more"


@dataclass(frozen=True, kw_only=True)
class Ending:
    """End of a run.

    Attributes:
        has_streamed: Whether packets were sent.
        signal_number: Number of the signal that ended the run; 0: another reason.
        is_abandoned: Whether a thread still runs, for which the process must not wait.
    """

    has_streamed: bool
    signal_number: int = 0
    is_abandoned: bool = False

    @property
    def exit_code(self) -> int:
        """Exit code: 128 plus the signal's number, as in a shell, for a run that a signal ended before the first packet, else 0."""
        return 0 if self.has_streamed or not self.signal_number else 128 + self.signal_number


@dataclass(frozen=True, kw_only=True)
class Console:
    """Output for the operator; the command line prints it, a service only logs.

    Attributes:
        step: Callback for each step of the start.
        started: Callback for the running rig and the metrics' address (empty without metrics) once packets flow.
        status: Callback for a reading, twice a second.
        ended: Callback for the end, before anything is closed.
    """

    step: Callable[[str], None] = lambda _text: None
    started: Callable[[RunningRig, str], None] = lambda _running, _metrics: None
    status: Callable[[Reading], None] = lambda _reading: None
    ended: Callable[[RunningRig], None] = lambda _running: None


async def serve(source: RigSource, console: Console, *, duration_s: float | None = None, until_played: bool = False) -> Ending:
    """Run a rig until SIGTERM or SIGINT (or for ``duration_s``, or until every replay has ended); SIGHUP reads the rig again.

    Raises:
        CaptureError: a capture cannot be replayed, or the recording cannot be created.
        ConfigError: the rig is invalid.
        AssetError: a file of the rig cannot be used.
        TransmitError: a socket or port cannot be opened, a permission is missing, or no packet could be sent.
    """
    manager = ServiceManager.from_environment()
    foreign = foreign_distribution()
    if foreign is not None:
        log.warning(
            "installation.name_clash_found", package="hilsim", version=foreign, advice="pip uninstall hilsim, then install hilsim-lidar again"
        )
    log_refused_caches()
    console.step("reading the rig")
    rig = source.load()
    say_hosts(rig)
    if rig.spec.metrics.enabled:
        listen(rig.spec.metrics).close()  # a port that is in use is reported before the slow part of a start
    log.info("daemon.preparing", rig=shown(rig), first_start=_FIRST_START)
    running = RunningRig(rig=rig, say=_say)
    async with _signal_requests() as requests:
        start = Start(report=console.step, manager=manager, stopping=requests.stopping)
        has_streamed = False
        try:
            with requests.stopping.naming_exceptions(), contextlib.suppress(StoppedError):
                await _open(running, start)
                async with _streams(running, start) as metrics:
                    has_streamed = True
                    _collect_garbage_from_now_on()
                    manager.ready(running.summary)
                    _log_joined(running)
                    log.info(
                        "daemon.started",
                        version=__version__,
                        rig=shown(rig),
                        sensors=len(rig.spec.sensor),
                        metrics=metrics,
                        **{name: len(found) for name, found in listed_parts(rig.spec).items()},
                        **running.obtained,
                    )
                    console.started(running, metrics)
                    await _run(running, source, console, manager, requests, duration_s, until_played=until_played)
                    console.ended(running)
        finally:
            manager.stopping("stopping")
            totals = {} if start.is_abandoned else running.stop()
            log.info("daemon.stopped", reason=requests.stopping.reason, **totals)
    return Ending(has_streamed=has_streamed, signal_number=requests.number, is_abandoned=start.is_abandoned)


def _log_joined(running: RunningRig) -> None:
    """Log the rig time at which this daemon begins in the middle of a world."""
    clock = running.clock
    if clock.begin_ns > clock.epoch_ns:
        log.info("daemon.joined", epoch_utc=running.rig.spec.transmit.epoch_utc, rig_s=(clock.begin_ns - clock.epoch_ns) / 1e9)


def _collect_garbage_from_now_on() -> None:
    """Enable garbage collection if a command has disabled it; objects of the start are excluded, because they live until the end."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


@contextlib.asynccontextmanager
async def _streams(running: RunningRig, start: Start) -> AsyncIterator[str]:
    """Open every port, then send; yields the metrics' address when packets flow.

    Raises:
        StoppedError: the daemon was stopped meanwhile.
        TransmitError: a port cannot be opened, or no packet could be sent.
    """
    async with _ports(running) as metrics_port:
        await _await_rig_time(running.rig, start)
        with _braked(running):
            await start.work("starting", running.start)
            running.changes.begin(running.clock)
            async with _metrics(running, metrics_port) as metrics:
                await _await_packets(running, start)
                yield metrics


async def _await_rig_time(rig: "Rig", start: Start) -> None:
    """Wait for a rig time 0 in the future.

    Raises:
        StoppedError: the daemon was stopped meanwhile.
    """
    left_s = wait_s(rig)
    if left_s > 0.0:
        log.info("daemon.waiting", epoch_utc=rig.spec.transmit.epoch_utc, wait_s=round(left_s, 3))
        await start.pause(f"waiting for {rig.spec.transmit.epoch_utc}", lambda: wait_s(rig))


async def _open(running: RunningRig, start: Start) -> None:
    """Prepare everything that packets need, and open every port, without sending."""
    rig = running.rig
    await start.kernels(rig)
    await start.work(
        "building the scene" if rig.spec.sensor or sees_scene(rig.spec) else "reading the captures",
        running.build,
    )
    for note in running.notes:
        log.warning("asset.noted", note=note)
    await start.work("loading kernels and opening sockets", running.open)


@contextlib.contextmanager
def _braked(running: RunningRig) -> Iterator[None]:
    """While the block runs, a real-time thread that works for half a second without sleeping causes all real-time threads to become ordinary ones."""
    loop = asyncio.get_running_loop()

    def exceeded() -> None:  # in a signal handler, which must not block
        running.leave_real_time()
        left = leave_real_time()
        loop.call_soon_threadsafe(lambda: log.error("scheduling.real_time_left", threads=list(left), longest_stretch_s=LONGEST_STRETCH_S))

    with real_time_limited(exceeded):
        yield


@contextlib.asynccontextmanager
async def _ports(running: RunningRig) -> AsyncIterator[socket.socket | None]:
    """Open the ports for clients before the first packet, so that an error sends nothing to receivers. Yields the metrics' port, if the rig has one."""
    rig = running.rig
    control = rig.directory / rig.spec.control.socket if rig.spec.control.socket else None
    async with (
        serve_lines(running, control),
        serve_datagrams(running, rig.spec.control),
        serve_http(running, rig.spec.control, rig.directory),
        running.serve(),
    ):
        with listen(rig.spec.metrics) if rig.spec.metrics.enabled else contextlib.nullcontext() as metrics_port:
            yield metrics_port


@contextlib.asynccontextmanager
async def _metrics(running: RunningRig, held: socket.socket | None) -> AsyncIterator[str]:
    """Serve metrics, if the rig has them, while the block runs; yields their address. Clients wait until the server has been imported."""
    if held is None:
        yield ""
        return
    serving = asyncio.create_task(guarded("metrics", lambda: _serve_metrics(running, held)), name="metrics")
    try:
        yield metrics_url(held)
    finally:
        serving.cancel()
        await asyncio.wait({serving})


async def _serve_metrics(running: RunningRig, held: socket.socket) -> None:
    # The import takes a tenth of a second, during which packets flow and the event loop runs.
    await asyncio.to_thread(importlib.import_module, "hilsim.telemetry.server")
    from hilsim.telemetry.server import serve_metrics  # noqa: PLC0415

    async with serve_metrics(running.reading, running.rig.spec.metrics, lambda: running.health.report(time.monotonic_ns()), port=held):
        await asyncio.Event().wait()


async def _await_packets(running: RunningRig, start: Start) -> None:
    """Wait until every sensor has sent its first data packet.

    Raises:
        StoppedError: the daemon was stopped meanwhile.
        TransmitError: no packet could be sent.
    """
    try:
        async with asyncio.timeout(_FIRST_PACKET_TIMEOUT_S):
            while not running.flowing:
                if start.stopping.is_requested:
                    raise StoppedError
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        errors = {name: count for flow in running.reading().flows for name, count in flow.send_errors.items()}
        raise TransmitError(
            f"no packet could be sent in {_FIRST_PACKET_TIMEOUT_S:.0f} s"
            + (f": the kernel refused them with {errors}; is the destination reachable (ip route get ADDRESS)?" if errors else "")
        ) from None


async def _run(
    running: RunningRig,
    source: RigSource,
    console: Console,
    manager: ServiceManager,
    requests: "_SignalRequests",
    duration_s: float | None,
    *,
    until_played: bool,
) -> None:
    reporter = HealthReporter(running.health, manager, log, lambda: running.summary)
    async with asyncio.TaskGroup() as tasks:
        helpers = [
            tasks.create_task(guarded("report", lambda: _report(running, console, reporter)), name="report"),
            tasks.create_task(guarded("watchdog", lambda: _feed_watchdog(running, manager)), name="watchdog"),
            tasks.create_task(guarded("pace", lambda: _pace(running)), name="pace"),
            tasks.create_task(guarded("reload", lambda: _reload_when_told(running, source, manager, requests.reload)), name="reload"),
        ]
        if until_played:
            helpers.append(tasks.create_task(_stop_when_played(running, requests.stopping), name="played"))
        try:
            async with asyncio.timeout(duration_s):
                await requests.stopping.wait()
        except TimeoutError:
            requests.stopping.stop(f"{duration_s:g} s have passed, as requested")
        for task in helpers:
            task.cancel()


async def _report(running: RunningRig, console: Console, reporter: HealthReporter) -> None:
    """Report the state of the stream: on the status line, in the log, to the service manager."""
    while True:
        await asyncio.sleep(_STATUS_INTERVAL_S)
        console.status(reporter.step(running.reading(), time.monotonic_ns(), running.played_notes))


async def _pace(running: RunningRig) -> None:
    """Adapt rendering to the machine's load."""
    while True:
        await asyncio.sleep(_PACE_INTERVAL_S)
        await asyncio.to_thread(running.pace)


def _say(event: str, keys: Mapping[str, object]) -> None:
    level = logging.INFO if event in _GOOD_NEWS else logging.WARNING
    log.log(level, event, **keys)


async def _stop_when_played(running: RunningRig, stopping: Stopping) -> None:
    while not running.played_out:  # noqa: ASYNC110 - threads without the GIL cannot set an Event
        await asyncio.sleep(_PLAYED_POLL_S)
    stopping.stop("every replay has ended")


async def _feed_watchdog(running: RunningRig, manager: ServiceManager) -> None:
    """Report progress of the sending loop to the service manager; without progress send nothing, so that it restarts the service."""
    interval_s = watchdog_interval_s()
    if interval_s is None:
        return
    passes = -1
    while True:
        if running.passes != passes:
            passes = running.passes
            manager.watchdog()
        await asyncio.sleep(interval_s)


async def _reload_when_told(running: RunningRig, source: RigSource, manager: ServiceManager, reload: asyncio.Event) -> None:
    while True:
        await reload.wait()
        reload.clear()
        manager.reloading()
        try:
            manager.ready(await _reload(running, source))
        except HilsimError as error:
            log.error("rig.reload_refused", reasons=str(error).split("\n"))  # noqa: TRY400 - an operator's error needs no traceback
            manager.ready(f"reload refused: {str(error).splitlines()[0]}")
        except Exception as error:
            # Whatever error a rig causes in this program, the present streams continue.
            log.exception("rig.reload_refused", reasons=[f"an error of this program: {type(error).__name__}: {error}"])
            manager.ready("reload refused: an error of this program, see the log")


async def _reload(running: RunningRig, source: RigSource) -> str:
    """Apply the present rig; returns a description of the streams."""
    changes: list[str] = []
    rigs: list[Rig] = []

    def change() -> None:
        rigs.append(source.load())
        say_hosts(rigs[0])
        changes.extend(running.change(rigs[0]))

    await in_thread(change, name="reload")
    log.info("rig.reloaded", changes=changes)
    return running.summary


@dataclass(kw_only=True, eq=False)
class _SignalRequests:
    """Requests to the daemon by signals.

    Attributes:
        stopping: Request to stop, with its reason.
        reload: Event that SIGHUP sets.
        number: Number of the signal that stops the daemon; 0: another reason.
    """

    stopping: Stopping = field(default_factory=Stopping)
    reload: asyncio.Event = field(default_factory=asyncio.Event)
    number: int = 0

    def stop_by(self, number: signal.Signals, reason: str) -> None:
        if not self.stopping.is_requested:
            self.number = int(number)
        self.stopping.stop(reason)


@contextlib.asynccontextmanager
async def _signal_requests() -> AsyncIterator[_SignalRequests]:
    """Handle SIGTERM, SIGINT and SIGHUP while the block runs."""
    requests = _SignalRequests()
    handlers: dict[signal.Signals, Callable[[str], None]] = {
        number: lambda reason, number=number: requests.stop_by(number, reason)  # type: ignore[misc] # mypy sees no default of a lambda's argument
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    with loop_faults_logged(), signals_handled(handlers | {signal.SIGHUP: lambda _reason: requests.reload.set()}):
        yield requests
