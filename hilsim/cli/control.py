"""``hilsim control``: tells a running daemon what to do."""

import asyncio
from pathlib import Path

import click

from hilsim.errors import ConfigError


@click.command()
@click.argument("socket", type=click.Path(path_type=Path))
@click.argument("words", metavar="COMMAND", nargs=-1, required=True)
def control(socket: Path, words: tuple[str, ...]) -> None:
    """Tell the daemon that listens at SOCKET: `pause [NAME]`, `resume [NAME]`, `seek SECONDS [NAME]` (a replay's name; all without), `status`, or `health`.

    SOCKET is the rig's `[control] socket`, or what `hilsim replay --control` was given.
    """
    from hilsim.daemon.control import tell  # noqa: PLC0415 - imports kernels

    answer = asyncio.run(tell(socket, " ".join(words)))
    if answer.startswith("error: "):
        raise ConfigError(answer.removeprefix("error: "))
    click.echo(answer)
