"""The command line: the only place that prints. Results go to standard output, faults and progress to standard error.

Exit codes: 0 done, 1 a fault (the text says which), 2 the command was not understood, 3 a replay left packets out, 128 and a signal's number: ended by it
before anything was sent.
"""

import sys
from importlib import import_module

import click

from hilsim import __version__
from hilsim.cli.scarcity import scarcity
from hilsim.errors import CommandFaultError, HilsimError

_COMMANDS = ("run", "replay", "control", "check", "record", "verify", "compare", "inspect", "picture", "background", "doctor", "warm")
"""In the order a newcomer needs them; each is a function of this name in a module of this name."""


class Commands(click.Group):
    """Imports a command only when it is asked for, so that ``hilsim --help`` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names in the order a newcomer needs them."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command's function, imported now."""
        if cmd_name not in _COMMANDS:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(import_module(f"hilsim.cli.{cmd_name}"), cmd_name)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="hilsim")
def cli() -> None:
    """Stand in for real lidars on a test bench.

    Start with `hilsim run demo`: a moving street seen by a VLP-16, sent to 127.0.0.1:2368.
    """


def main() -> None:
    """Entry point of the ``hilsim`` command."""
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
        told = scarcity(error)
        if not told:
            raise
        click.secho("error: ", fg="red", bold=True, err=True, nl=False)
        click.echo(told, err=True)
        sys.exit(1)
