"""``hilsim control``: sends a command to a running daemon."""

import click

from hilsim.errors import ConfigError

_EXAMPLES = """\b
Examples:
  hilsim control /run/hilsim/control pause front
  hilsim control udp:127.0.0.1:9465 seek 12.5
"""


@click.command(epilog=_EXAMPLES)
@click.argument("address")
@click.argument("words", metavar="COMMAND", nargs=-1, required=True)
def control(address: str, words: tuple[str, ...]) -> None:
    """Pause, resume or seek the replays of the daemon at ADDRESS, or show its status or health.

    ADDRESS is a Unix socket (the rig's `[control] socket`, or what `hilsim replay --control` was given), or udp:HOST:PORT (`[control] listen`). COMMAND
    is `pause [NAME]`, `resume [NAME]`, `seek SECONDS [NAME]` (NAME of a replay; all without), `status`, or `health`.
    """
    from hilsim.daemon.control_client import done, sender  # noqa: PLC0415 - no other command needs it

    try:
        send = sender(address)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    click.echo(done(send(" ".join(words))))
