"""``hilsim control``: sends a command to a running daemon."""

import json
import sys
from typing import Any

import click

from hilsim.errors import ConfigError

_EXAMPLES = """\b
Examples:
  hilsim control /run/hilsim/control pause front
  hilsim control udp:127.0.0.1:9465 seek 12.5
  hilsim control bench.sock move name=crate position_m=[4,0,0.5]
  hilsim control bench.sock weather 'weather={fog_visibility_m=40}'
  hilsim control bench.sock script > session.jsonl
"""


@click.command(epilog=_EXAMPLES)
@click.argument("address")
@click.argument("words", metavar="COMMAND", nargs=-1, required=True)
def control(address: str, words: tuple[str, ...]) -> None:
    """Change what the daemon at ADDRESS emulates, control its replays, or show its state.

    ADDRESS is a Unix socket (the rig's `[control] socket`, or what `hilsim replay --control` was given), or udp:HOST:PORT (`[control] listen`), which
    takes the commands for replays alone.

    COMMAND is a kind of change with its keys as KEY=VALUE (`add`, `move`, `travel`, `remove`, `weather`, `sensor`; values as in TOML, texts without
    quotes too); `script`, the changes made so far; `state`; `pause [NAME]`, `resume [NAME]`, `seek SECONDS [NAME]` (NAME of a replay; all without);
    `status` of the replays; `health`; or a request in JSON.
    """
    from hilsim.daemon.control_client import done, send_request, sender  # noqa: PLC0415 - no other command needs it

    try:
        request = _request(words)
        if request is None:
            click.echo(done(sender(address)(" ".join(words))))
            return
        text = send_request(address, json.dumps(request), float(request.get("change", {}).get("at_s", 0.0)))
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    answer = json.loads(text)
    if request["do"] == "script" and answer.get("ok"):
        for change in answer["changes"]:
            click.echo(json.dumps(change))
    elif answer.get("ok"):
        click.echo(text)
    else:
        click.echo(f"error: {answer.get('error')}", err=True)
        sys.exit(1)


def _request(words: tuple[str, ...]) -> dict[str, Any] | None:
    """The request in JSON for a command; None for a command that the daemon takes in words.

    Raises:
        ConfigError: it is neither.
    """
    from hilsim.config.script import CHANGE_KINDS  # noqa: PLC0415 - imports kernels
    from hilsim.config.toml_file import toml_value  # noqa: PLC0415

    if words[0].startswith("{"):
        try:
            request = json.loads(" ".join(words))
        except ValueError as error:
            raise ConfigError(f"a request must be a JSON object, got {error}") from error
        return request if isinstance(request, dict) and isinstance(request.get("do"), str) else {"do": request}
    if words[0] in ("script", "state"):
        return {"do": words[0]}
    if words[0] not in {kind.kind for kind in CHANGE_KINDS}:
        return None
    change: dict[str, Any] = {"kind": words[0]}
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            raise ConfigError(f"a change must be given as KEY=VALUE, got {word}")
        change[key] = toml_value(value, word)
    return {"do": "change", "change": change}
