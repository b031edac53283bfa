"""Command line, with parts' commands the only package that prints: results to standard output, errors and progress to standard error.

Exit codes: 0 success, 1 an error (with a message), 2 wrong usage, 3 a replay skipped packets, 128 plus a signal's number: the signal ended the command
before the first packet.
"""

import errno
import gc
import sys
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from hilsim.config.places import did_you_mean
from hilsim.errors import CommandFaultError, HilsimError
from hilsim.registry import OWN_PARTS
from hilsim.version import __version__

SUMMARIES: dict[str, str] = {
    "run": "Emulate RIG (a .toml file or a shipped rig such as `demo`) until Ctrl-C or SIGTERM; SIGHUP reads it again.",
    "replay": "Send the packets of CAPTUREs (PCAP, PCAPNG; plain, gzip, zstd) as the sensors did, with new stamps; several captures use one clock.",
    "control": "Change what the daemon at ADDRESS emulates, control its replays, or show its state.",
    "view": "Show what SOURCE sends, live in a browser: points, sensors, objects and health.",
    "publish": "Publish the scans of SOURCE (a daemon or a capture) or of a UDP port, live, for Foxglove and as ROS 2 topics, until Ctrl-C.",
    "poses": "Send the poses of SOURCE (OSI, MAVLink, Gazebo, an FMU) to a rig that is driven from outside.",
    "check": "Validate RIG with everything it names, and print the effective configuration.",
    "record": "Write what RIG would send to a capture, as fast as the machine renders and always with the same bytes.",
    "verify": "Check a Velodyne, Cepton (STDV) or Ouster stream bit by bit, from CAPTURE (PCAP, PCAPNG) or live; real sensors and emulated ones alike.",
    "compare": "Compare the streams of Velodyne or Ouster sensors of captures A and B: each statistic of both, and how far they are apart.",
    "calibrate": "Learn a Velodyne unit from CAPTUREs of it, made while it stood still: its lasers, its encoder, its clock.",
    "inspect": "List what is in each CAPTURE (PCAP, PCAPNG, also gzip or zstd): sensors, modes, rates, gaps, lost packets, clocks; and how to replay it.",
    "picture": "Draw one scan of SOURCE (a rig or a capture) or of a live stream: images of range and reflectivity, and the view from above.",
    "map": "Aggregate the returns of SOURCE (a rig or a capture) to a map: the number of returns in each cell of a grid, and their mean position.",
    "export": "Write the scans, packets and poses of SOURCE (a rig or a capture) in a format of other tools: point clouds, MCAP, ROS 2 bags, labelled data sets.",
    "dataset": "Render the recordings of SPEC (a TOML file: rigs, seeds, variants) with their labels, each a file or folder of the data set.",
    "convert": "Copy the packets in SOURCE to TARGET, each byte as it is: captures, MCAP files of hilsim, ROS bags of drivers' packets.",
    "background": "Make a depth map of the place that the stationary sensor of each CAPTURE saw, without what came and went.",
    "doctor": "Report what this machine can do: how many sensors of RIG it carries, real-time scheduling, memory locking, CUDA, ports, cache; and what to change.",
    "bench": "Measure what this machine carries: rays a second by the size of the scene, and how many sensors like the first of RIG (by default the demo's).",
    "warm": "Compile the kernels that each RIG needs into the cache, so that its first start takes seconds: for images, services and tests.",
}
"""Summaries in the order in which a new user needs the commands; each command is a function in a module of the same name, here or of a part.

A test compares each with the first sentence of the command's own help."""


_GC_THRESHOLD = (50_000, 20, 50)
"""Thresholds of garbage collection. Imported objects live until the end; with Python's defaults, checking them took a twelfth of a command's start."""
_MEMORY = "must have more memory: see `ulimit -v`, the service's MemoryMax= and `free -m`"
_FILES = "must be allowed more open files: see `ulimit -n`, or the service's LimitNOFILE="
_THREADS = "must be allowed more threads or more memory for them: see `ulimit -u`, `ulimit -v`, or the service's TasksMax="
_OF_THE_LOADER = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")
"""Messages of the dynamic loader, which libraries wrap into errors without an error number."""
_BY_ERRNO = {errno.ENOMEM: _MEMORY, errno.EMFILE: _FILES, errno.ENFILE: _FILES}


class Commands(click.Group):
    """Group that imports a command only when it is called, so that ``hilsim --help`` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names in the order in which a new user needs them."""
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's function."""
        if cmd_name not in SUMMARIES:
            return super().get_command(ctx, cmd_name)
        home = next((f"parts.{own.folder}" for own in OWN_PARTS.values() if cmd_name in own.commands), "cli")
        command: click.Command = getattr(import_module(f"hilsim.{home}.{cmd_name}"), cmd_name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command like click, with a suggestion for an unknown word."""
        if not ctx.resilient_parsing and args[0] not in SUMMARIES and not args[0].startswith("-"):
            ctx.fail(f'No such command "{args[0]}"{did_you_mean(args[0], SUMMARIES)}')
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write each command's whole first sentence, for which click would import every command and which it would cut."""
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands and options without importing a command."""
        found = [CompletionItem(name, help=summary) for name, summary in SUMMARIES.items() if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="hilsim")
def cli() -> None:
    """Stand in for real lidars on a test bench.

    Start with `hilsim run demo`: a moving street seen by a VLP-16, sent to 127.0.0.1:2368.
    """


def main() -> None:
    """Entry point of the ``hilsim`` command."""
    gc.set_threshold(*_GC_THRESHOLD)
    try:
        cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.Abort:
        sys.exit(130)
    except CommandFaultError:
        sys.exit(1)
    except HilsimError as error:
        for line in str(error).split("\n"):
            click.secho("error: ", fg="red", bold=True, err=True, nl=False)
            click.echo(line, err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except (MemoryError, OSError, RuntimeError, ImportError, ExceptionGroup) as error:
        sentence = scarcity(error)
        if not sentence:
            raise
        click.secho("error: ", fg="red", bold=True, err=True, nl=False)
        click.echo(sentence, err=True)
        sys.exit(1)


def scarcity(error: BaseException) -> str:
    """Name of the exhausted resource of this machine or shell that an exception reports, which an operator can raise; empty for other exceptions.

    In a group the first such exception counts: when one task has no memory, other tasks fail with other errors.
    """
    for fault in _chain(error):
        sentence = ""
        if isinstance(fault, MemoryError):
            sentence = _MEMORY
        elif isinstance(fault, OSError | ImportError):
            number = fault.errno if isinstance(fault, OSError) else None
            sentence = _MEMORY if any(text in str(fault) for text in _OF_THE_LOADER) else _BY_ERRNO.get(number or 0, "")
        elif isinstance(fault, RuntimeError) and "can't start new thread" in str(fault):
            sentence = _THREADS
        if sentence:
            return f"hilsim {sentence} ({str(fault) or type(fault).__name__})"
    return ""


def _chain(error: BaseException) -> list[BaseException]:
    """List an exception, the members of a group, and the causes of each."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting and len(found) < 100:
        fault = waiting.pop(0)
        found.append(fault)
        waiting += fault.exceptions if isinstance(fault, BaseExceptionGroup) else ()
        waiting += [cause for cause in (fault.__cause__, fault.__context__) if cause is not None]
    return found
