"""Texts of requests: JSON, or words for people. Both become the same requests, and words are translated here only.

=====================  ===================================================
words                  answer
=====================  ===================================================
``pause [NAME]``       ``ok`` when the replay (or all of them) is paused
``resume [NAME]``      ``ok`` when it continues
``seek SECONDS [NAME]``  ``ok``; it continues at that capture time
``status``             one JSON object: each replay's position and state
``health``             one JSON object: level, faults, the last minute of
                       counters, now and as it was at the latest faults
=====================  ===================================================

The answer in words to a refused request is ``error: …``. It imports no slow module.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from hilsim.errors import ConfigError

COMMANDS = ("pause", "resume", "seek", "status", "health")
"""Requests that have words at every listener; datagrams accept these alone."""
CHANGES = ("add", "move", "travel", "remove", "weather", "sensor", "clock", "replay", "vehicle", "fault", "clear")
"""Kinds of changes, as ``config.script`` has them, whose import takes half a second; a test compares them."""
_NAMES = ("script", "state", "rig", "faults")
_NAMED_BY = {"fault": "kind", "clear": "name"}
"""Keys that the first word after a change's kind gives."""
LONGEST_POSITION_S = 1e8
POSITION_RULE = "a position must be 0 to 1e8 s"


def parse_request(text: str) -> dict[str, Any]:
    """Parse a request in JSON.

    Raises:
        ConfigError: the text is not a request.
    """
    try:
        request = json.loads(text, parse_constant=_refused_constant)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"a request must be a JSON object, got {error}") from error
    if not isinstance(request, dict):
        raise ConfigError(f"a request must be a JSON object, got {type(request).__name__}")
    return request


def _refused_constant(text: str) -> None:
    raise ValueError(f"the number {text}, which JSON does not allow")


def is_json(line: str) -> bool:
    """Whether a line is a request in JSON, and its answer too; else it is words."""
    return line.lstrip().startswith("{")


def parse_line(line: str) -> dict[str, Any]:
    """Parse a request in JSON or in words.

    Raises:
        ConfigError: the line is not a request.
    """
    return parse_request(line) if is_json(line) else parse_words(line)


def parse_words(line: str) -> dict[str, Any]:
    """Parse a request in words.

    Raises:
        ConfigError: the words are none of the commands.
    """
    match line.split():
        case ["pause" | "resume" as verb, *names] if len(names) <= 1:
            return {"do": verb, "replay": "".join(names)}
        case ["seek", seconds, *names] if len(names) <= 1:
            return {"do": "seek", "position_s": _position(seconds), "replay": "".join(names)}
        case ["status" | "health" as verb]:
            return {"do": verb}
    raise ConfigError(f'a command must be pause [NAME], resume [NAME], seek SECONDS [NAME], status or health, got "{line.strip()}"')


def _position(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds <= LONGEST_POSITION_S:
        raise ConfigError(f"{POSITION_RULE}, got {text}")
    return seconds


def parse_arguments(words: Sequence[str]) -> dict[str, Any] | None:
    """Parse the arguments of ``hilsim control``: a request in JSON, its name, or a change as ``KIND KEY=VALUE …``; None: they are words.

    A fault is ``fault KIND KEY=VALUE …``, and ``clear NAME`` mends it.

    Raises:
        ConfigError: a key or the JSON is malformed.
    """
    if words[0].startswith("{"):
        return parse_request(" ".join(words))
    if words[0] in _NAMES:
        return {"do": words[0]}
    if words[0] not in CHANGES:
        return None
    from hilsim.config.toml_file import toml_value  # noqa: PLC0415 - most commands need none

    change: dict[str, Any] = {}
    for number, word in enumerate(words[1:]):
        key, equals, value = word.partition("=")
        if number == 0 and not equals and words[0] in _NAMED_BY:
            change[_NAMED_BY[words[0]]] = word
        elif not equals or not key.isidentifier():
            raise ConfigError(f"a change must be given as KEY=VALUE, got {word}")
        else:
            change[key] = toml_value(value, word)
    if words[0] == "fault" and "fault" not in change:
        timed = {"at_s": change.pop("at_s")} if "at_s" in change else {}
        change = {**timed, "fault": change}
    return {"do": "change", "change": {"kind": words[0], **change}}


def in_words(answer: Mapping[str, Any]) -> str:
    """Answer for a request in words."""
    if not answer["ok"]:
        return f"error: {answer['error']}"
    rest = {key: value for key, value in answer.items() if key not in {"ok", "id"}}
    return json.dumps(rest) if rest else "ok"
