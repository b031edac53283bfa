"""Reference of the requests to a running daemon in Markdown, generated from their table: ``docs/reference/control-requests.md`` is this text."""

from collections.abc import Iterator

from hilsim.daemon.control.requests import PROTOCOL, REQUESTS, Key, Request

_HEAD = """# Requests to a running daemon

Every request of [the control of a running daemon](control.md), protocol {protocol}.
This page is generated from `hilsim/daemon/control/requests.py`; do not edit it.
A request has its name as `do`, and may have an `id`, a number or a text, which its answer repeats.
The answer has `ok`, and `error` where the request was refused.
"""


def control_reference() -> str:
    """The whole page."""
    return _HEAD.format(protocol=PROTOCOL) + "".join("\n".join(_section(name, request)) for name, request in REQUESTS.items())


def _section(name: str, request: Request) -> Iterator[str]:
    yield from ("", f"## {name}", "", request.text, "")
    if request.keys:
        yield from ("| key | type | what |", "|---|---|---|")
        yield from (f"| `{key}` | {_type(rule)} | {rule.text} |" for key, rule in request.keys.items())
        yield ""
    if request.answer:
        yield from ("| key of the answer | what |", "|---|---|")
        yield from (f"| `{key}` | {text} |" for key, text in request.answer.items())
        yield ""


def _type(rule: Key) -> str:
    return f"{rule.type}, required" if rule.default is None else rule.type
