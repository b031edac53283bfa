"""The daemon: builds a station, keeps it running in one TaskGroup, answers signals, scrapes and the service manager."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from hilsim import __version__
from hilsim.config.rig import Rig, load_rig, with_recording
from hilsim.daemon.doctor import foreign_distribution
from hilsim.daemon.notify import ServiceManager, watchdog_interval_s
from hilsim.daemon.station import Station
from hilsim.errors import HilsimError, TransmitError
from hilsim.telemetry.readings import Reading
from hilsim.telemetry.server import serve_metrics

log = structlog.get_logger("hilsim")

_FIRST_PACKET_TIMEOUT_S = 10.0
_STATUS_INTERVAL_S = 0.5
_POLL_S = 0.002


@dataclass(frozen=True, kw_only=True)
class Console:
    """How the daemon speaks to a person; the command line prints, a service only logs.

    Attributes:
        step: Called with what is being done while starting.
        started: Called once packets flow, with the rig and the metrics address.
        status: Called twice a second.
    """

    step: Callable[[str], None] = lambda _text: None
    started: Callable[[Rig, str], None] = lambda _rig, _metrics: None
    status: Callable[[Reading], None] = lambda _reading: None


@dataclass(frozen=True, kw_only=True)
class RigSource:
    """Where the rig comes from, at the start and at each reload.

    Attributes:
        path: Its file.
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


async def serve(rig_path: Path, console: Console, *, duration_s: float | None = None, recording: Mapping[str, str | float] | None = None) -> None:
    """Run a rig until SIGTERM or SIGINT (or for ``duration_s``); SIGHUP reads the rig again; ``recording`` replaces keys of its ``[record]``.

    Raises:
        CaptureError: the recording cannot be created.
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
    source = RigSource(path=rig_path, recording=recording or {})
    rig = source.load()
    station = Station(rig=rig)
    try:
        async with _signals() as (stop, reload):
            await _start(station, console, manager, stop)
            if stop.is_set():
                return
            async with serve_metrics(station.reading, rig.spec.metrics) as (host, port):
                await _await_packets(station, stop)
                metrics = f"http://{host}:{port}/metrics"
                manager.ready(f"{len(rig.lidars)} sensor(s) streaming")
                log.info("daemon.started", version=__version__, rig=str(rig_path), sensors=len(rig.lidars), metrics=metrics, **station.obtained)
                console.started(rig, metrics)
                await _run(station, source, console, manager, stop, reload, duration_s)
    finally:
        manager.stopping("stopping")
        station.stop()
        log.info("daemon.stopped")


async def _start(station: Station, console: Console, manager: ServiceManager, stop: asyncio.Event) -> None:
    """Build, open and start, in a thread, so that signals and the watchdog are answered meanwhile."""
    for step, work in (
        ("building the scene", station.build),
        ("preparing kernels (the first time takes about ten seconds) and opening sockets", station.open),
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
) -> None:
    async with asyncio.TaskGroup() as tasks:
        helpers = [
            tasks.create_task(_report(station, console, manager), name="report"),
            tasks.create_task(_feed_watchdog(station, manager), name="watchdog"),
            tasks.create_task(_reload_when_told(station, source, manager, reload), name="reload"),
        ]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(duration_s):
                await stop.wait()
        for task in helpers:
            task.cancel()


async def _report(station: Station, console: Console, manager: ServiceManager) -> None:
    faults: tuple[str, ...] = ()
    while True:
        await asyncio.sleep(_STATUS_INTERVAL_S)
        reading = station.reading()
        console.status(reading)
        if reading.faults != faults:
            for fault in reading.faults:
                log.error("health.fault_found", fault=fault)
            if not reading.faults:
                log.info("health.restored")
            manager.status("; ".join(reading.faults) or f"{len(reading.sensors)} sensor(s) streaming")
            faults = reading.faults


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
            manager.ready(f"{len(rig.lidars)} sensor(s) streaming")


@contextlib.asynccontextmanager
async def _signals() -> AsyncIterator[tuple[asyncio.Event, asyncio.Event]]:
    """Events set by SIGTERM or SIGINT, and by SIGHUP."""
    stop, reload = asyncio.Event(), asyncio.Event()
    with _handled(signal.SIGTERM, stop), _handled(signal.SIGINT, stop), _handled(signal.SIGHUP, reload):
        yield stop, reload


@contextlib.contextmanager
def _handled(number: signal.Signals, event: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(number, event.set)
    try:
        yield
    finally:
        loop.remove_signal_handler(number)
