"""``hilsim run``: the daemon, with a live status line on a terminal."""

import asyncio
import sys
from pathlib import Path

import click

from hilsim.cli.leaving import leave
from hilsim.cli.rigs import RigArgument
from hilsim.cli.screen import Screen
from hilsim.telemetry.logs import LEVELS, configure_logging


@click.command()
@click.argument("rig", type=RigArgument())
@click.option("--duration-s", type=click.FloatRange(0.1), default=None, help="Stop after this long. Default: run until told to stop.")
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what is sent to this PCAP file, with true send times. An existing one is replaced, unless the recording rotates.",
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
    from hilsim.daemon.service import Console, RigFile, serve  # noqa: PLC0415 - imports kernels

    person = sys.stderr.isatty()
    configure_logging("warning" if person and log_level == "info" else log_level)  # type: ignore[arg-type] # click.Choice gives one of LEVELS
    screen = Screen(rig.name)
    console = Console(step=screen.step, started=screen.started, status=screen.status) if person else Console()
    options = {
        "file": str(record.absolute()) if record else None,
        "rotate_mb": record_rotate_mb,
        "rotate_s": record_rotate_s,
        "keep": record_keep,
    }
    given = {name: value for name, value in options.items() if value is not None}
    ending = asyncio.run(serve(RigFile(path=rig, recording=given), console, duration_s=duration_s))
    if person:
        screen.close()
    leave(ending)
