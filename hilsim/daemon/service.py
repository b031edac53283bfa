"""The daemon: builds a station, keeps it running in one TaskGroup, answers signals, scrapes and the service manager."""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import structlog

from hilsim import __version__
from hilsim.config.rig import Rig, load_rig, with_recording
from hilsim.daemon.control import serve_control
from hilsim.daemon.doctor import foreign_distribution
from hilsim.daemon.flight_link import serve_link
from hilsim.daemon.health import HealthReporter
from hilsim.daemon.notify import ServiceManager, watchdog_interval_s
from hilsim.daemon.station import Station
from hilsim.errors import HilsimError, TransmitError
from hilsim.telemetry.loop_faults import loop_faults_said
from hilsim.telemetry.readings import Reading

log = structlog.get_logger("hilsim")

_FIRST_PACKET_TIMEOUT_S = 10.0
_STATUS_INTERVAL_S = 0.5
_POLL_S = 0.002
_PLAYED_POLL_S = 0.05
_FIRST_START = "compiles kernels, once: a minute, with a vehicle or on a busy machine more"


@dataclass(frozen=True, kw_only=True)
class Console:
    """How the daemon speaks to a person; the command line prints, a service only logs.

    Attributes:
        step: Called with what is being done while starting.
        started: Called once packets flow, with what runs and the metrics' address (empty without).
        status: Called twice a second.
        ended: Called at the end, before anything is closed.
    """

    step: Callable[[str], None] = lambda _text: None
    started: Callable[[Station, str], None] = lambda _station, _metrics: None
    status: Callable[[Reading], None] = lambda _reading: None
    ended: Callable[[Station], None] = lambda _station: None


class RigSource(Protocol):
    """Where the rig comes from, at the start and at each reload."""

    def load(self) -> Rig:
        """Read and check it.

        Raises:
            ConfigError: the rig is not sound.
        """


@dataclass(frozen=True, kw_only=True)
class RigFile:
    """A rig from a file.

    Attributes:
        path: The file.
        recording: Keys of its ``[record]`` that the command line replaces.
    """

    path: Path
    recording: Mapping[str, str | float] = field(default_factory=dict)

    def load(self) -> Rig:
        """Read and check it.

        Raises:
            ConfigError: the rig is not sound.
        """
        return with_recording(load_rig(self.path), self.recording)


@dataclass(frozen=True, kw_only=True)
class MadeRig:
    """A rig that the command line made: the same at each reload."""

    rig: Rig

    def load(self) -> Rig:
        """It."""
        return self.rig


async def serve(source: RigSource, console: Console, *, duration_s: float | None = None, until_played: bool = False) -> None:
    """Run a rig until SIGTERM or SIGINT (or for ``duration_s``, or until every replay has ended); SIGHUP reads the rig again.

    Raises:
        CaptureError: a capture cannot be replayed, or the recording cannot be created.
        ConfigError: the rig is not sound.
        AssetError: a file it names cannot be used.
        TransmitError: a socket, port or permission cannot be had, or no packet could be sent.
    """
    manager = ServiceManager.from_environment()
    foreign = foreign_distribution()
    if foreign is not None:
        log.warning(
            "installation.name_clash_found", package="hilsim", version=foreign, advice="pip uninstall hilsim, then install hilsim-lidar again"
        )
    console.step("reading the rig")
    rig = source.load()
    log.info("daemon.preparing", rig=str(rig.path), first_start=_FIRST_START)
    station = Station(rig=rig)
    try:
        async with _signals() as (stop, reload):
            await _start(station, console, manager, stop)
            if stop.is_set():
                return
            socket = rig.directory / rig.spec.control.socket if rig.spec.control.socket else None
            async with serve_control(station, socket), serve_link(station.aircraft), _metrics(station, rig) as metrics:
                await _await_packets(station, stop)
                manager.ready(_streaming(rig))
                log.info(
                    "daemon.started",
                    version=__version__,
                    rig=str(rig.path),
                    sensors=len(rig.spec.sensor),
                    replays=len(rig.spec.replay),
                    metrics=metrics,
                    **station.obtained,
                )
                console.started(station, metrics)
                await _run(station, source, console, manager, stop, reload, duration_s, until_played=until_played)
                console.ended(station)
    finally:
        manager.stopping("stopping")
        totals = station.stop()
        log.info("daemon.stopped", **totals)


@contextlib.asynccontextmanager
async def _metrics(station: Station, rig: Rig) -> AsyncIterator[str]:
    """Serve metrics, if they are wanted, while the block runs; yields their address."""
    if not rig.spec.metrics.enabled:
        yield ""
        return
    from hilsim.telemetry.server import serve_metrics  # noqa: PLC0415 - a tenth of a second that a replay without metrics need not spend

    async with serve_metrics(station.reading, rig.spec.metrics, lambda: station.health.report(time.monotonic_ns())) as (host, port):
        yield f"http://{host}:{port}/metrics"


def _streaming(rig: Rig) -> str:
    """How many of what stream."""
    parts = [f"{len(rig.spec.sensor)} sensor(s)"] if rig.spec.sensor else []
    parts += ["a vehicle"] if rig.spec.vehicle else []
    parts += [f"{len(rig.spec.replay)} replay(s)"] if rig.spec.replay else []
    return " and ".join(parts) + " streaming"


async def _start(station: Station, console: Console, manager: ServiceManager, stop: asyncio.Event) -> None:
    """Build, open and start, in a thread, so that signals and the watchdog are answered meanwhile."""
    for step, work in (
        ("building the scene" if station.rig.spec.sensor else "reading the captures", station.build),
        ("preparing kernels (the first time takes a minute or more) and opening sockets", station.open),
        ("starting", station.start),
    ):
        console.step(step)
        manager.status(step)
        await _attended(asyncio.to_thread(work), manager)
        for note in station.notes if work == station.build else ():
            log.warning("asset.noted", note=note)
        if stop.is_set():
            return


async def _attended(work: Coroutine[None, None, None], manager: ServiceManager) -> None:
    """Wait for work that takes long, telling the watchdog that it is wanted."""
    interval_s = watchdog_interval_s()
    task = asyncio.create_task(work)
    while not task.done():
        await asyncio.wait({task}, timeout=interval_s or 1.0)
        if interval_s is not None:
            manager.watchdog()
    task.result()


async def _await_packets(station: Station, stop: asyncio.Event) -> None:
    """Until every sensor has sent its first data packet."""
    try:
        async with asyncio.timeout(_FIRST_PACKET_TIMEOUT_S):
            while not station.flowing and not stop.is_set():  # noqa: ASYNC110 - a thread without the GIL cannot set an Event
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        errors = {name: count for flow in station.reading().flows for name, count in flow.send_errors.items()}
        raise TransmitError(
            f"no packet could be sent in {_FIRST_PACKET_TIMEOUT_S:.0f} s"
            + (f": the kernel refused them with {errors}; is the destination reachable (ip route get ADDRESS)?" if errors else "")
        ) from None


async def _run(
    station: Station,
    source: RigSource,
    console: Console,
    manager: ServiceManager,
    stop: asyncio.Event,
    reload: asyncio.Event,
    duration_s: float | None,
    *,
    until_played: bool,
) -> None:
    async with asyncio.TaskGroup() as tasks:
        helpers = [
            tasks.create_task(_report(station, console, manager), name="report"),
            tasks.create_task(_feed_watchdog(station, manager), name="watchdog"),
            tasks.create_task(_reload_when_told(station, source, manager, reload), name="reload"),
        ]
        if until_played:
            helpers.append(tasks.create_task(_stop_when_played(station, stop), name="played"))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(duration_s):
                await stop.wait()
        for task in helpers:
            task.cancel()


async def _report(station: Station, console: Console, manager: ServiceManager) -> None:
    reporter = HealthReporter(station.health, manager, log, lambda: _streaming(station.rig))
    while True:
        await asyncio.sleep(_STATUS_INTERVAL_S)
        console.status(reporter.step(station.reading(), time.monotonic_ns(), station.replays.notes))


async def _stop_when_played(station: Station, stop: asyncio.Event) -> None:
    while not station.played_out:  # noqa: ASYNC110 - threads without the GIL cannot set an Event
        await asyncio.sleep(_PLAYED_POLL_S)
    stop.set()


async def _feed_watchdog(station: Station, manager: ServiceManager) -> None:
    """Tell the service manager that the sending loop makes progress; when it does not, say nothing and be restarted."""
    interval_s = watchdog_interval_s()
    if interval_s is None:
        return
    passes = -1
    while True:
        if station.passes != passes:
            passes = station.passes
            manager.watchdog()
        await asyncio.sleep(interval_s)


async def _reload_when_told(station: Station, source: RigSource, manager: ServiceManager, reload: asyncio.Event) -> None:
    while True:
        await reload.wait()
        reload.clear()
        manager.reloading()
        try:
            rig = source.load()
            done = await asyncio.to_thread(station.change, rig)
        except HilsimError as error:
            for line in str(error).split("\n"):
                log.error("rig.reload_refused", reason=line)  # noqa: TRY400 - an operator's fault has no traceback
            manager.ready(f"reload refused: {str(error).splitlines()[0]}")
        else:
            for line in done:
                log.info("rig.reloaded", sensor=line)
            manager.ready(_streaming(rig))


@contextlib.asynccontextmanager
async def _signals() -> AsyncIterator[tuple[asyncio.Event, asyncio.Event]]:
    """Events set by SIGTERM or SIGINT, and by SIGHUP."""
    stop, reload = asyncio.Event(), asyncio.Event()
    with loop_faults_said(), _handled(signal.SIGTERM, stop), _handled(signal.SIGINT, stop), _handled(signal.SIGHUP, reload):
        yield stop, reload


@contextlib.contextmanager
def _handled(number: signal.Signals, event: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(number, event.set)
    try:
        yield
    finally:
        loop.remove_signal_handler(number)
