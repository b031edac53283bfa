"""``hilsim doctor``: report what this machine, or the flight controller at a port, can do, and what to change."""

import asyncio
import dataclasses
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hilsim.cli.rigs import RigArgument, changes, loaded, setting
from hilsim.config.places import rig_path
from hilsim.errors import CommandFaultError
from hilsim.registry import OWN_PARTS
from hilsim.transmit.links.line import DEFAULT_BAUD, MAX_BAUD, MIN_BAUD, SerialSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hilsim.telemetry.findings import Finding

_TCP = "tcp:"
_COLOURS = {"good": "green", "fair": "yellow", "bad": "red"}


_EXAMPLES = """\b
Examples:
  hilsim doctor                                     this machine, with the demo
  hilsim doctor my.toml                             how many sensors such as my.toml's it carries
  hilsim doctor my.toml --set sensor.roof.sub_rays=1
  hilsim doctor --link /dev/serial/by-id/usb-...    the flight controller at a port
"""


@click.command(epilog=_EXAMPLES)
@click.argument("rig", type=RigArgument(), required=False)
@setting
@click.option("--link", metavar="PORT", help="Examine the flight controller at a serial port, or at tcp:HOST:PORT, where PX4's simulation connects.")
@click.option(
    "--baud",
    type=click.IntRange(MIN_BAUD, MAX_BAUD),
    default=DEFAULT_BAUD,
    show_default=True,
    help="Baud rate of the serial port; without effect on USB.",
)
@click.option("--uart/--usb", "is_uart", default=None, help="Kind of the serial port. Default: that of its driver.")
@click.option(
    "--seconds", type=click.FloatRange(1.0, 600.0), default=8.0, show_default=True, help="Time to wait for a heartbeat, and then to listen."
)
@click.option("--rig", "named", type=RigArgument(), default=None, help="The same as RIG.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(
    *,
    rig: Path | None,
    settings: tuple[str, ...],
    link: str | None,
    baud: int,
    is_uart: bool | None,
    seconds: float,
    named: Path | None,
    as_json: bool,
) -> None:
    """Report what this machine can do: how many sensors of RIG it carries, real-time scheduling, memory locking, CUDA, ports, cache; and what to change.

    Three seconds of each of RIG's sensors are rendered for that; without RIG those of the demo, if its kernels are compiled already.

    With --link, report whether the flight controller there can fly hardware in the loop, and what to set. Nothing is set, armed or simulated: only heartbeats
    and queries are sent, and nothing to an armed controller. Exits with 1 if a finding is bad.
    """
    if rig is not None and named is not None:
        raise click.UsageError("give either RIG or --rig")
    if link is not None and (rig or named or settings):
        raise click.UsageError("give either RIG or --link PORT")
    if link is None:
        findings = _machine(rig or named, settings)
        shown: Any = [dataclasses.asdict(finding) for finding in findings]
    else:
        findings, shown = _controller(link_end(link, baud), link, is_uart=is_uart, seconds=seconds)
    if as_json:
        click.echo(json.dumps(shown, indent=2))
    else:
        _print(findings)
    if any(finding.verdict == "bad" for finding in findings):
        raise CommandFaultError


def link_end(link: str, baud: int) -> SerialSpec | str:
    """Value of ``--link``: a serial port, or the address after ``tcp:``."""
    if link.startswith(_TCP):
        return link.removeprefix(_TCP)
    return SerialSpec(port=os.path.abspath(link), baud=baud)  # noqa: PTH100 - resolve() would replace a lasting name by a changing one


def _machine(path: Path | None, settings: tuple[str, ...]) -> "tuple[Finding, ...]":
    from hilsim.cli.diagnosis.machine import RENDERED_S, examine  # noqa: PLC0415
    from hilsim.cli.warm import warmed  # noqa: PLC0415 - imports numba

    rig = loaded(path or rig_path("demo"), changes(settings))
    if path is not None:
        asyncio.run(warmed(rig))
    if sys.stderr.isatty():
        click.echo(f"rendering {RENDERED_S:g} s of each sensor ...", err=True)
    return examine(rig)


def _controller(end: SerialSpec | str, link: str, *, is_uart: bool | None, seconds: float) -> "tuple[tuple[Finding, ...], dict[str, Any]]":
    if "numba" not in sys.modules:
        os.environ["NUMBA_DISABLE_JIT"] = (
            "1"  # some kB/s are read: kernels as plain Python are fast enough, and loading compiled ones would take longer than the query
        )
    module = next(f"hilsim.parts.{own.folder}.{own.link_examiner}" for own in OWN_PARTS.values() if own.link_examiner)
    examined = import_module(module).examined
    if sys.stderr.isatty():
        click.echo(f"listening at {link}, at most {2 * seconds:g} s ...", err=True)
    found: tuple[tuple[Finding, ...], dict[str, Any]] = examined(end, is_uart=is_uart, seconds=seconds)
    return found


def _print(findings: "Sequence[Finding]") -> None:
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        click.secho(f"{finding.verdict:4} ", fg=_COLOURS[finding.verdict], bold=True, nl=False)
        click.echo(f"{finding.subject:{width}}  {finding.fact}")
        for step in finding.advice.splitlines():
            click.echo(f"     {'':{width}}  -> {step}")
