"""``hilsim control``: sends a command to a running daemon."""

import asyncio
from pathlib import Path

import click

from hilsim.errors import ConfigError

_UDP = "udp:"
_EXAMPLES = """\b
Examples:
  hilsim control /run/hilsim/control pause front
  hilsim control udp:127.0.0.1:9465 seek 12.5
"""


@click.command(epilog=_EXAMPLES)
@click.argument("address")
@click.argument("words", metavar="COMMAND", nargs=-1, required=True)
def control(address: str, words: tuple[str, ...]) -> None:
    """Tell the daemon that listens at ADDRESS to pause, resume or seek its replays, or ask it for its status or health.

    ADDRESS is a Unix socket (the rig's `[control] socket`, or what `hilsim replay --control` was given), or udp:HOST:PORT (`[control] listen`). COMMAND
    is `pause [NAME]`, `resume [NAME]`, `seek SECONDS [NAME]` (NAME of a replay; all without), `status`, or `health`.
    """
    line = " ".join(words)
    if address.startswith(_UDP):
        host, port = udp_endpoint(address)
        from hilsim.daemon.control_datagrams import tell_by_datagram  # noqa: PLC0415 - imports kernels

        answer = asyncio.run(tell_by_datagram(host, port, line))
    else:
        from hilsim.daemon.control import tell  # noqa: PLC0415 - imports kernels

        answer = asyncio.run(tell(Path(address), line))
    if answer.startswith("error: "):
        raise ConfigError(answer.removeprefix("error: "))
    click.echo(answer)


def udp_endpoint(address: str) -> tuple[str, int]:
    """Host and port of ``udp:HOST:PORT``.

    Raises:
        ClickException: it is not in this form.
    """
    host, _, port = address.removeprefix(_UDP).rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535):
        raise click.UsageError(f"ADDRESS must be udp:HOST:PORT with a port of 1 to 65535, got {address}")
    return host, int(port)
