"""``hilsim run``: run the daemon, with a live status line on a terminal."""

import asyncio
import gc
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hilsim.cli.addresses import HostPort
from hilsim.cli.leaving import leave
from hilsim.cli.rigs import RigArgument, changes, changing, choosing
from hilsim.cli.terminal.live_line import LiveLine
from hilsim.registry import OWN_PARTS
from hilsim.telemetry.levels import LEVELS, Level

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hilsim.assembly.rig_sources import RigFile
    from hilsim.show.view.child import ViewChild

_EXAMPLES = """\b
Examples:
  hilsim run demo                                         a VLP-16 in a street, to 127.0.0.1:2368
  hilsim run demo --to bench3.lab:2368                    to another host
  hilsim run demo --set sensor.roof.rotation_rate_rpm=1200 --set sensor.roof.sub_rays=1
  hilsim run my.toml --record drive.pcap --duration-s 60  and record what was sent
  hilsim run my.toml --only roof --only left              two of its sensors; another host runs the others
  hilsim run my.toml --ready-file /tmp/ready.json &       for a script that waits until packets flow
"""


@click.command(epilog=_EXAMPLES)
@click.argument("rig", type=RigArgument())
@changing
@choosing
@click.option("--no-noise", is_flag=True, help="Send the poses and scans of the rig's parts without added noise.")
@click.option("--duration-s", type=click.FloatRange(0.1), default=None, help="Stop after this long. Default: run until stopped.")
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what is sent to this PCAP file, with true send times. An existing file is replaced, unless the recording rotates.",
)
@click.option("--record-rotate-mb", type=click.FloatRange(0), help="Begin a new file before one grows above this many megabytes: FILE-0001.pcap, ...")
@click.option("--record-rotate-s", type=click.FloatRange(0), help="Begin a new file after this many seconds.")
@click.option("--record-keep", type=click.IntRange(0), help="Number of the rotation's files to keep, including earlier runs' files.")
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write this file (JSON: pid, metrics, sensors with their ports) when the first packets have been sent; it is removed at the end.",
)
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Files that the rig names are relative to this folder, instead of its own.",
)
@click.option(
    "--script",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Change the rig at the rig times that this file (.toml or .jsonl) lists.",
)
@click.option("--view", is_flag=True, help="Show what is sent in a browser: starts `hilsim view`, whose URL is printed (the extra `view`).")
@click.option(
    "--view-at",
    type=HostPort(),
    metavar="HOST:PORT",
    help="Address of that page, a loopback one (default 127.0.0.1:8080; port 0: any); implies --view.",
)
@click.option("--end-with", type=click.IntRange(1), metavar="PID", help="Stop when the process of this number has ended in any way.")
@click.option("--quiet", is_flag=True, help="Show no status line, and log only warnings and errors.")
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
def run(
    *,
    rig: Path,
    to: str,
    settings: tuple[str, ...],
    only: tuple[str, ...],
    no_noise: bool,
    duration_s: float | None,
    record: Path | None,
    record_rotate_mb: float | None,
    record_rotate_s: float | None,
    record_keep: int | None,
    ready_file: Path | None,
    directory: Path | None,
    script: Path | None,
    view: bool,
    view_at: tuple[str, int] | None,
    end_with: int | None,
    quiet: bool,
    log_level: Level,
) -> None:
    """Emulate RIG (a .toml file or a shipped rig such as `demo`) until Ctrl-C or SIGTERM; SIGHUP reads it again.

    Packets are sent at their deadlines; the status line and /metrics report the lateness. The options also apply when the rig is read again. Settings that
    the --record options do not give come from the rig's [record].
    """
    gc.disable()  # until packets flow: garbage collection would take a fifth of the start, and find nothing
    click.get_current_context().call_on_close(gc.enable)  # if it ends before that
    if end_with is not None:
        from hilsim.processes import end_with_process  # noqa: PLC0415

        end_with_process(end_with)  # before slow imports
    person = sys.stderr.isatty() and not quiet
    line = LiveLine(is_watched=person)
    line.step(f"{rig.name}: starting")
    from hilsim.assembly.rig_sources import RigFile  # noqa: PLC0415
    from hilsim.cli.terminal.screen import Screen  # noqa: PLC0415 - imports kernels
    from hilsim.daemon.ready_file import ReadyFile  # noqa: PLC0415
    from hilsim.daemon.service import Console, serve  # noqa: PLC0415
    from hilsim.telemetry.logs import configure_logging  # noqa: PLC0415

    configure_logging("warning" if (person or quiet) and log_level == "info" else log_level)
    screen = Screen(rig.name, line)
    console = Console(step=screen.step, started=screen.started, status=screen.status) if person else Console()
    options = {
        "file": str(record.absolute()) if record else None,
        "rotate_mb": record_rotate_mb,
        "rotate_s": record_rotate_s,
        "keep": record_keep,
    }
    overrides = {name: value for name, value in options.items() if value is not None}
    changed = replace(changes(settings, to), no_noise=no_noise)
    child = None
    if view or view_at is not None:
        child = _view_child(line if person else None, view_at)
        changed = child.reachable(rig, changed, directory)
        console = child.beside(console)
    place = directory.absolute() if directory else None
    source = RigFile(path=rig, changes=changed, recording=overrides, directory=place, script=script, only=only)
    of_daemon = {"--script": script, "--no-noise": no_noise, "--view": view or view_at is not None}
    run_otherwise = _runner(source, [name for name, value in of_daemon.items() if value])
    if run_otherwise is not None:
        if person:
            screen.close()
        run_otherwise(duration_s, ready_file.absolute() if ready_file else None)
        return
    if ready_file is None:
        ending = asyncio.run(serve(source, console, duration_s=duration_s))
    else:
        with ReadyFile(path=ready_file.absolute()).kept() as ready:
            ending = asyncio.run(serve(source, ready.console(console), duration_s=duration_s))
    if person:
        screen.close()
    if child is not None:
        child.end()
    leave(ending)


def _runner(source: "RigFile", unsupported: "Sequence[str]") -> "Callable[[float | None, Path | None], None] | None":
    """What runs a rig in place of the daemon (``PartKind.runner``); None: the daemon.

    Raises:
        ConfigError: the rig is invalid, or an option was given that such a rig does not have.
    """
    from hilsim.config.part_kind import parts_of  # noqa: PLC0415
    from hilsim.config.part_tables import part_kind  # noqa: PLC0415
    from hilsim.config.toml_file import rig_table  # noqa: PLC0415

    tables = {*rig_table(source.path), *(setting.partition(".")[0] for setting in source.changes.settings)}
    if not any(kind.moves for kind in filter(None, map(part_kind, OWN_PARTS.keys() & tables))):
        return None
    rig = source.load()
    runners = (kind.runner(rig, each, unsupported) for kind, specs in parts_of(rig.spec) for each in specs)
    return next(filter(None, runners), None)


def _view_child(line: LiveLine | None, at: tuple[str, int] | None) -> "ViewChild":
    """Live view beside the daemon; it ends with the command."""
    from hilsim.show.view.child import ViewChild  # noqa: PLC0415 - few runs have one
    from hilsim.show.view.page.server import require_view  # noqa: PLC0415

    require_view()

    def show(text: str) -> None:
        if line is not None:
            line.over("")
        click.echo(text, err=True)

    child = ViewChild(show=show, at=at)
    click.get_current_context().call_on_close(child.end)
    return child
