"""Terminal output of a running daemon on standard error: addresses of everything, then one live line."""

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hilsim.cli.terminal.live_line import LiveLine
from hilsim.config.part_tables import part_kind
from hilsim.telemetry.faults import Level
from hilsim.telemetry.metrics import TIMING_BOUNDS_S, HistogramReading
from hilsim.telemetry.readings import FlowReading, Reading

if TYPE_CHECKING:
    from hilsim.assembly.build import SensorFlows
    from hilsim.daemon.running_rig import RunningRig
    from hilsim.emulator.setting import LidarSetting


class Screen:
    """Terminal output on standard error."""

    def __init__(self, name: str, line: LiveLine) -> None:
        """Create the output of a rig or replay called ``name``."""
        self._name = name
        self._line = line
        self._hint = ""
        self._sent_before: tuple[float, int] | None = None

    def step(self, text: str) -> None:
        """Show one step of the start on the live line."""
        self._line.step(f"{self._name}: {text}")

    def started(self, running: "RunningRig", metrics: str) -> None:
        """Show the addresses of everything that runs."""
        from hilsim.assembly.build import sensor_flows  # noqa: PLC0415 - loads kernels, which are loaded by now

        self._line.end_steps()
        self._line.over("")
        rig = running.rig
        for title, text in _summaries(running):
            click.secho(title, bold=True, err=True, nl=False)
            click.echo(f"  {text}", err=True)
        for name, note in running.played_notes:
            click.secho(f"note     {name}: {note}", fg="yellow", err=True)
        if metrics:
            click.echo(f"metrics  {metrics}", err=True)
        if rig.spec.sensor:
            first = sensor_flows(rig.spec.sensor[0], rig.lidars[0]).data.flow
            click.echo(
                f"see it   {command()} picture --listen {first.destination}:{first.destination_port} -o scan.png   (Ctrl-C here stops)", err=True
            )
        if self._hint:
            click.echo(self._hint, err=True)
        click.echo(err=True)

    def hint(self, text: str) -> None:
        """Show a line after the start."""
        self._hint = text

    def status(self, reading: Reading) -> None:
        """Show a reading on the live line."""
        points = [flow for flow in reading.flows if flow.flow in {"data", "points"}] or list(reading.flows)
        sent = sum(flow.sent_packets for flow in reading.flows)
        dropped = sum(flow.dropped_packets for flow in reading.flows) + sum(sensor.render_skipped_packets for sensor in reading.sensors)
        errors = sum(sum(flow.send_errors.values()) for flow in reading.flows)
        states = [part_kind(table).state(readings) for table, readings in reading.parts.items()]
        parts = [_health(reading), *states]
        if points or not any(states):
            parts += [
                self._rate(sent),
                f"late {_quantiles(points)}",
                f"dropped {dropped}",
                f"refused {errors}",
                reading.scheduling.get("transmit", ""),
                f"{sent:,} sent",  # last, because a terminal of 80 columns may cut it off
            ]
        self._line.over("  ".join(part for part in parts if part))

    def _rate(self, sent: int) -> str:
        now_s = time.monotonic()
        before, self._sent_before = self._sent_before, (now_s, sent)
        return f"{(sent - before[1]) / (now_s - before[0]):,.0f}/s" if before and now_s > before[0] else ""

    def close(self) -> None:
        """End the live line and keep its text on the terminal."""
        self._line.close()


def _health(reading: Reading) -> str:
    """Text of all faults in the colour of the worst one; empty without faults."""
    colour = "red" if reading.level is Level.UNHEALTHY else "yellow"
    return click.style("; ".join(fault.sentence for fault in reading.faults), fg=colour) if reading.faults else ""


def _summaries(running: "RunningRig") -> Iterator[tuple[str, str]]:
    """Yield the name of everything that runs, with its ports, addresses or topics."""
    from hilsim.assembly.build import sensor_flows  # noqa: PLC0415 - loads kernels, which are loaded by now

    rig = running.rig
    for sensor, setting in zip(rig.spec.sensor, rig.lidars, strict=True):
        yield sensor.name, _summary(setting, sensor_flows(sensor, setting))
    yield from running.lines


def command() -> str:
    """Command that calls this installation of hilsim: its name if the shell finds it, else its path."""
    found = shutil.which("hilsim")
    here = Path(sys.argv[0])
    if found is None or not here.exists() or not Path(found).samefile(here):
        return str(here)
    return "hilsim"


def _quantiles(flows: list[FlowReading]) -> str:
    if not flows:
        return "-"
    summed = [sum(counts) for counts in zip(*(flow.lateness.cumulative for flow in flows), strict=True)]
    merged = HistogramReading(cumulative=tuple(summed), sum_s=0.0)
    return ", ".join(f"{name} {_quantile(merged, TIMING_BOUNDS_S, share)}" for name, share in (("p50", 0.5), ("p99", 0.99)))


def _quantile(reading: HistogramReading, bounds_s: tuple[float, ...], share: float) -> str:
    total = reading.cumulative[-1]
    if total == 0:
        return "-"
    for count, bound_s in zip(reading.cumulative, bounds_s, strict=False):
        if count >= share * total:
            return f"< {bound_s * 1e6:.0f} us"
    return f"> {bounds_s[-1] * 1e6:.0f} us"


def _summary(lidar: "LidarSetting", flows: "SensorFlows") -> str:
    """Pace of a sensor, and destinations of its packets."""
    data = flows.data.flow
    return f"{lidar.family.pace}, from {data.source} to {data.destination}:{data.destination_port} {lidar.family.packets_text(flows.info.flow.destination_port)}"
