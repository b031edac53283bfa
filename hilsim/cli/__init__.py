"""Command line, the only package that prints: results to standard output, errors and progress to standard error.

Exit codes: 0 success, 1 an error (with a message), 2 wrong usage, 3 a replay skipped packets, 128 plus a signal's number: the signal ended the command
before the first packet.
"""

import gc
import sys
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from hilsim.cli.commands import SUMMARIES
from hilsim.cli.scarcity import scarcity
from hilsim.config.places import did_you_mean
from hilsim.errors import CommandFaultError, HilsimError
from hilsim.version import __version__

_GC_THRESHOLD = (50_000, 20, 50)
"""Thresholds of garbage collection. Imported objects live until the end; with Python's defaults, checking them took a twelfth of a command's start."""


class Commands(click.Group):
    """Group that imports a command only when it is called, so that ``hilsim --help`` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names in the order in which a new user needs them."""
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's function."""
        if cmd_name not in SUMMARIES:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(import_module(f"hilsim.cli.{cmd_name}"), cmd_name)
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
