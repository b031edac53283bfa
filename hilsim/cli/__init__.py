"""The command line: the only place that prints. Results go to standard output, faults and progress to standard error.

Exit codes: 0 done, 1 a fault (the text says which), 2 the command was not understood.
"""

import sys

import click

from hilsim import __version__
from hilsim.errors import CommandFaultError, HilsimError


class Commands(click.Group):
    """Imports a command only when it is asked for, so that ``hilsim --help`` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names in the order a newcomer needs them."""
        return ["run", "replay", "control", "check", "record", "verify", "compare", "inspect", "picture", "doctor"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command's function, imported now."""
        match cmd_name:
            case "run":
                from hilsim.cli.run import run as command  # noqa: PLC0415
            case "replay":
                from hilsim.cli.replay import replay as command  # noqa: PLC0415
            case "control":
                from hilsim.cli.control import control as command  # noqa: PLC0415
            case "check":
                from hilsim.cli.check import check as command  # noqa: PLC0415
            case "record":
                from hilsim.cli.record import record as command  # noqa: PLC0415
            case "verify":
                from hilsim.cli.verify import verify as command  # noqa: PLC0415
            case "compare":
                from hilsim.cli.compare import compare as command  # noqa: PLC0415
            case "inspect":
                from hilsim.cli.inspect import inspect as command  # noqa: PLC0415
            case "picture":
                from hilsim.cli.picture import picture as command  # noqa: PLC0415
            case "doctor":
                from hilsim.cli.doctor import doctor as command  # noqa: PLC0415
            case _:
                return super().get_command(ctx, cmd_name)
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
