"""``hilsim run``: the daemon, with a live status line on a terminal."""

import asyncio
import shutil
import sys
from pathlib import Path

import click

from hilsim.cli.rigs import RigArgument
from hilsim.config.rig import Rig
from hilsim.telemetry.logs import LEVELS, configure_logging
from hilsim.telemetry.readings import FlowReading, HistogramReading, Reading


@click.command()
@click.argument("rig", type=RigArgument())
@click.option("--duration-s", type=click.FloatRange(0.1), default=None, help="Stop after this long. Default: run until told to stop.")
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what is sent to this nanosecond PCAP file, with true send times. An existing one is replaced, unless the recording rotates.",
)
@click.option("--record-rotate-mb", type=click.FloatRange(0), help="Begin a new file before one grows above this many megabytes: FILE-0001.pcap, ...")
@click.option("--record-rotate-s", type=click.FloatRange(0), help="Begin a new file after this many seconds.")
@click.option("--record-keep", type=click.IntRange(0), help="Keep only this many of the rotation's files, earlier runs' among them.")
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
def run(
    *,
    rig: Path,
    duration_s: float | None,
    record: Path | None,
    record_rotate_mb: float | None,
    record_rotate_s: float | None,
    record_keep: int | None,
    log_level: str,
) -> None:
    """Emulate RIG (a .toml file or a shipped rig such as `demo`) until Ctrl-C or SIGTERM; SIGHUP reads it again.

    Packets leave by their own deadlines; the status line and /metrics say how well. What a --record option does not say, the rig's [record] does.
    """
    from hilsim.daemon.service import Console, serve  # noqa: PLC0415 - imports kernels

    person = sys.stderr.isatty()
    configure_logging("warning" if person and log_level == "info" else log_level)  # type: ignore[arg-type] # click.Choice gives one of LEVELS
    screen = Screen(rig)
    console = Console(step=screen.step, started=screen.started, status=screen.status) if person else Console()
    options = {
        "file": str(record.absolute()) if record else None,
        "rotate_mb": record_rotate_mb,
        "rotate_s": record_rotate_s,
        "keep": record_keep,
    }
    given = {name: value for name, value in options.items() if value is not None}
    asyncio.run(serve(rig, console, duration_s=duration_s, recording=given))
    if person:
        screen.ended()


class Screen:
    """What a person sees on the terminal, on standard error."""

    def __init__(self, rig: Path) -> None:
        self._rig = rig
        self._line_open = False

    def step(self, text: str) -> None:
        """One step of starting, on one line that is written over."""
        self._over(f"{self._rig.name}: {text} ...")

    def started(self, rig: Rig, metrics: str) -> None:
        """Where everything is."""
        self._over("")
        for sensor, lidar in zip(rig.spec.sensor, rig.lidars, strict=True):
            network = sensor.network
            click.secho(f"{sensor.name}", bold=True, err=True, nl=False)
            click.echo(
                f"  {lidar.spec.model} at {lidar.rotation_rate_rpm} rpm, from {network.source}"
                f" to {network.destination}:{network.data_port} (data) and :{network.position_port} (position)",
                err=True,
            )
        click.echo(f"metrics  {metrics}", err=True)
        first = rig.spec.sensor[0].network
        click.echo(f"see it   {command()} picture --listen {first.destination}:{first.data_port} -o scan.png   (Ctrl-C here stops)", err=True)
        click.echo(err=True)

    def status(self, reading: Reading) -> None:
        """The live line."""
        data = [flow for flow in reading.flows if flow.flow == "data"]
        sent = sum(flow.sent_packets for flow in reading.flows)
        dropped = sum(flow.dropped_packets for flow in reading.flows) + sum(sensor.feeder_skipped_packets for sensor in reading.sensors)
        errors = sum(sum(flow.send_errors.values()) for flow in reading.flows)
        parts = [
            f"{sent:,} packets",
            f"lateness {_quantiles(data)}",
            f"dropped {dropped}",
            f"refused {errors}",
            reading.scheduling.get("transmit", ""),
        ]
        text = "  ".join(part for part in parts if part)
        self._over(text + ("  " + click.style("; ".join(reading.faults), fg="red") if reading.faults else ""))

    def ended(self) -> None:
        """Leave the last line standing."""
        if self._line_open:
            click.echo(err=True)

    def _over(self, text: str) -> None:
        click.echo(f"\r\x1b[K{text}", err=True, nl=False)
        self._line_open = bool(text)


def command() -> str:
    """How to call hilsim from here: by its name where that finds this installation, else by its path."""
    found = shutil.which("hilsim")
    here = Path(sys.argv[0])
    if found is None or not here.exists() or not Path(found).samefile(here):
        return str(here)
    return "hilsim"


def _quantiles(flows: list[FlowReading]) -> str:
    from hilsim.telemetry.metrics import LATENESS  # noqa: PLC0415

    if not flows:
        return "-"
    summed = [sum(counts) for counts in zip(*(flow.lateness.cumulative for flow in flows), strict=True)]
    merged = HistogramReading(cumulative=tuple(summed), sum_s=0.0)
    return ", ".join(f"{name} {_quantile(merged, LATENESS.bounds_s, share)}" for name, share in (("p50", 0.5), ("p99", 0.99)))


def _quantile(reading: HistogramReading, bounds_s: tuple[float, ...], share: float) -> str:
    total = reading.cumulative[-1]
    if total == 0:
        return "-"
    for count, bound_s in zip(reading.cumulative, bounds_s, strict=False):
        if count >= share * total:
            return f"< {bound_s * 1e6:.0f} us"
    return f"> {bounds_s[-1] * 1e6:.0f} us"
