"""``hilsim control``: send a command to a running daemon."""

import json
import sys
from typing import Any

import click

from hilsim.errors import ConfigError

CHANGES = ("add", "move", "travel", "remove", "weather", "sensor", "clock", "replay", "vehicle")
"""Kinds of changes, as ``config.script`` has them, whose import takes half a second; a test compares them."""
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
    if words == ("packets",):
        _follow_packets(address, token_file)
        return
    from hilsim.daemon.control_client import done, send_request, sender  # noqa: PLC0415 - no other command needs it

    try:
        request = _request(words)
        send = sender(address, token_file=token_file)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    if request is None:
        click.echo(done(send(" ".join(words))))
        return
    text = send_request(address, json.dumps(request), _at_s(request), token_file=token_file)
    answer = json.loads(text)
    if not answer.get("ok"):
        raise ConfigError(str(answer.get("error")))
    if words[0] == "script":
        for change in answer["changes"]:
            click.echo(json.dumps(change))
    else:
        click.echo(text)


def _follow_packets(address: str, token_file: str | None) -> None:
    """Write the capture that a daemon sends to standard output, until either end closes.

    Raises:
        TransmitError: the daemon ends, or does not answer.
    """
    from hilsim.daemon.remote.packet_client import open_packets  # noqa: PLC0415 - as above

    if sys.stdout.isatty():
        raise click.UsageError("packets must be written to a file or a pipe, got a terminal (for example: … packets > now.pcap)")
    try:
        source = open_packets(address, token_file=token_file)
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


def _at_s(request: dict[str, Any]) -> float:
    """Rig time (s) until which the answer may be delayed."""
    change = request.get("change")
    at_s = change.get("at_s", 0.0) if isinstance(change, dict) else 0.0
    return float(at_s) if isinstance(at_s, int | float) else 0.0


def _request(words: tuple[str, ...]) -> dict[str, Any] | None:
    """Convert a command to a request in JSON; None for a command that the daemon accepts in words.

    Raises:
        ConfigError: the command is neither.
    """
    if words[0].startswith("{"):
        try:
            request = json.loads(" ".join(words))
        except ValueError as error:
            raise ConfigError(f"a request must be a JSON object, got {error}") from error
        return request if isinstance(request, dict) and isinstance(request.get("do"), str) else {"do": request}
    if words[0] in ("script", "state", "rig"):
        return {"do": words[0]}
    if words[0] not in CHANGES:
        return None
    from hilsim.config.toml_file import toml_value  # noqa: PLC0415 - most commands need none

    change: dict[str, Any] = {"kind": words[0]}
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            raise ConfigError(f"a change must be given as KEY=VALUE, got {word}")
        change[key] = toml_value(value, word)
    return {"do": "change", "change": change}
