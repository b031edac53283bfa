"""``hilsim control``: sends a command to a running daemon."""

import click

from hilsim.errors import ConfigError

_EXAMPLES = """\b
Examples:
  hilsim control /run/hilsim/control pause front
  hilsim control udp:127.0.0.1:9465 seek 12.5
  hilsim control http://127.0.0.1:9466 '{"do": "state"}' --token-file control.token
"""


@click.command(epilog=_EXAMPLES)
@click.argument("address")
@click.argument("words", metavar="COMMAND", nargs=-1, required=True)
@click.option("--token-file", metavar="PATH", help="File with the daemon's token (the rig's `[control] token_file`), for http://HOST:PORT.")
def control(address: str, words: tuple[str, ...], token_file: str | None) -> None:
    """Pause, resume or seek the replays of the daemon at ADDRESS, or show its status or health.

    ADDRESS is a Unix socket (the rig's `[control] socket`, or what `hilsim replay --control` was given), udp:HOST:PORT (`[control] listen`), or
    http://HOST:PORT (`[control] http`). COMMAND is `pause [NAME]`, `resume [NAME]`, `seek SECONDS [NAME]` (NAME of a replay; all without), `status`,
    `health`, or a request in JSON.
    """
    from hilsim.daemon.control_client import done, sender  # noqa: PLC0415 - no other command needs it

    try:
        send = sender(address, token_file=token_file)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    click.echo(done(send(" ".join(words))))
