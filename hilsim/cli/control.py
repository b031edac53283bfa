"""``hilsim control``: send a command to a running daemon."""

import json
import sys
from typing import TYPE_CHECKING

import click

from hilsim.errors import ConfigError

if TYPE_CHECKING:
    from hilsim.daemon.control.client import Client

_EXAMPLES = """\b
Examples:
  hilsim control /run/hilsim/control pause front
  hilsim control udp:127.0.0.1:9465 seek 12.5
  hilsim control bench.sock move name=crate position_m=[4,0,0.5]
  hilsim control bench.sock weather 'weather={fog_visibility_m=40}'
  hilsim control bench.sock script > session.jsonl
  hilsim control bench.sock packets > now.pcap
  hilsim control bench.sock packets | wireshark -k -i -
  hilsim control http://127.0.0.1:9466 '{"do": "state"}' --token-file control.token
"""


@click.command(epilog=_EXAMPLES)
@click.argument("address")
@click.argument("words", metavar="COMMAND", nargs=-1, required=True)
@click.option("--token-file", metavar="PATH", help="File with the daemon's token (the rig's `[control] token_file`), for http://HOST:PORT.")
def control(address: str, words: tuple[str, ...], token_file: str | None) -> None:
    """Change what the daemon at ADDRESS emulates, control its replays, or show its state.

    ADDRESS is a Unix socket (the rig's `[control] socket`, or that of `hilsim replay --control`), http://HOST:PORT (`[control] http`), or
    udp:HOST:PORT (`[control] listen`), which accepts only the commands for replays.

    COMMAND is a kind of change with its keys as KEY=VALUE (`add`, `move`, `travel`, `remove`, `weather`, `sensor`, `replay`, `vehicle`; values as in TOML,
    texts also without quotes); `script` (the changes made so far); `state`; `rig` (its file and settings); `packets` (every packet that is sent from now on, as a
    capture); `pause [NAME]`, `resume [NAME]`, `seek SECONDS [NAME]` (of replay NAME; without: of all replays);
    `status` (of the replays); `health`; or a request in JSON.
    """
    from hilsim.daemon.control.client import Client  # noqa: PLC0415 - no other command needs these
    from hilsim.daemon.control.grammar import in_words, parse_arguments, parse_words  # noqa: PLC0415

    try:
        client = Client(address, token_file=token_file)
        request = None if words == ("packets",) else parse_arguments(words)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    if words == ("packets",):
        _follow_packets(client)
        return
    answer = {"ok": True, **client.ask(parse_words(" ".join(words)) if request is None else request)}
    if request is None:
        click.echo(in_words(answer))
    elif words[0] == "script":
        for change in answer["changes"]:
            click.echo(json.dumps(change))
    else:
        click.echo(json.dumps(answer))


def _follow_packets(client: "Client") -> None:
    """Write the capture that a daemon sends to standard output, until either end closes.

    Raises:
        TransmitError: the daemon ends, or does not answer.
    """
    if sys.stdout.isatty():
        raise click.UsageError("packets must be written to a file or a pipe, got a terminal (for example: … packets > now.pcap)")
    try:
        source = client.packets()
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    with source, open(sys.stdout.fileno(), "wb", buffering=0, closefd=False) as out:
        try:
            while (data := source.read(1.0)) != b"":
                rest = memoryview(data or b"")
                while rest:
                    rest = rest[out.write(rest) :]
        except (BrokenPipeError, KeyboardInterrupt):  # the reader of the pipe has ended, or the operator has seen enough
            return
