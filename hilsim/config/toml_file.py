"""Reading of a TOML file as a table, with limits on its size and nesting.

The TOML parser is recursive, and its time is quadratic in the length of a dotted key and of a number. So a text is scanned
once before it is parsed; the table is checked afterwards, because headers, dotted keys and inline tables nest each other.
"""

import codecs
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date, time
from pathlib import Path
from typing import Any

from hilsim.config.places import SDF_SUFFIXES
from hilsim.errors import ConfigError
from hilsim.limits import TOML_DIGITS, TOML_FILE_BYTES, TOML_ITEMS, TOML_NESTING, TOML_TEXT

TEXT_OR_COMMENT = re.compile(
    r'"""[^"\\]*(?:(?:\\.|"{1,2}(?!"))[^"\\]*)*(?:"{3,5}|\Z)'
    r"|'''.*?(?:'{3,5}|\Z)"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?'
    r"|'[^'\n]*'?"
    r"|#[^\n]*",
    re.DOTALL,
)
"""Texts and comments of TOML, each to its end or the file's, so that every character is scanned once."""
_BETWEEN_KEYS = re.compile(r"[,=\[\]{}\n]")
_DIGITS = re.compile(rf"(?<![0-9_])[0-9_]{{{TOML_DIGITS.bound + 1},}}")
_LARGEST, _SMALLEST = 2**63 - 1, -(2**63)

_HINTS = {
    "Cannot declare": "; tables of which there may be several are written [[sensor]], not [sensor]",
    "Invalid value": '; texts have quotes, as name = "hall"',
}
"""Advice for errors of the parser, by words of them."""


def read_toml(path: Path) -> dict[str, Any]:
    """Read the table of a TOML file.

    Raises:
        ConfigError: the file is missing, unreadable, not TOML, or beyond a limit; the message names file and line or key.
    """
    try:
        with path.open("rb") as file:
            data = file.read(TOML_FILE_BYTES.bound + 1)
        if len(data) > TOML_FILE_BYTES.bound:
            raise ConfigError(f"{path}: {TOML_FILE_BYTES.subject} must be at most {TOML_FILE_BYTES.text}, got more")
        if data.startswith(codecs.BOM_UTF8):
            raise ConfigError(
                f'{path}: must be UTF-8 without a byte order mark, got one at line 1 (in Notepad save as "UTF-8", not "UTF-8 with BOM")'
            )
        text = data.decode("utf-8").replace("\r\n", "\n")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: must be a TOML file, got a directory") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    _look_over(text, str(path))
    try:
        table: dict[str, Any] = _with_texts(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        hint = next((advice for words, advice in _HINTS.items() if words in str(error)), "")
        raise ConfigError(f"{path}: must be TOML: {error}{hint}") from error
    check_limits(table, str(path))
    return table


def check_limits(table: Mapping[str, Any], where: str) -> None:
    """Reject a table beyond the limits.

    Args:
        table: Table with the types of TOML.
        where: Start of messages.

    Raises:
        ConfigError: the table has faults; the message names all, one per line.
    """
    faults = list(_faults(table))
    if faults:
        raise ConfigError("\n".join(f"{where}: {fault}" for fault in faults))


def toml_value(text: str, where: str) -> Any:
    """Parse a value in the syntax after ``=`` in TOML; anything else is text, as if in quotes.

    Args:
        text: Text of the value.
        where: Start of messages.

    Raises:
        ConfigError: the value is beyond a limit.
    """
    TOML_TEXT.enforce(len(text), where, ConfigError)
    try:
        _look_over(f"value = {text}", where)
        table = _with_texts(tomllib.loads(f"value = {text}"))
    except tomllib.TOMLDecodeError:
        table = {"value": text}
    value = table["value"] if len(table) == 1 else text
    check_limits({"value": value}, where)
    return value


def _with_texts(value: Any) -> Any:
    """A parsed value with each date and time as a text, as in quotes: no key has a type of its own for them."""
    match value:
        case dict():
            return {key: _with_texts(part) for key, part in value.items()}
        case list():
            return [_with_texts(part) for part in value]
        case date() | time():
            return value.isoformat().replace("+00:00", "Z")
    return value


def key_path(location: tuple[int | str, ...]) -> str:
    """Path of a key in messages: ``sensor[0].network.mode``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _look_over(text: str, where: str) -> None:
    """Reject a text that would take the TOML parser too long or too deep."""
    bare = TEXT_OR_COMMENT.sub(_placeholder, text)
    depth, line = 0, 1
    for match in re.finditer(r"[\[{\]}\n]", bare):
        line += match[0] == "\n"
        depth += (match[0] in "[{") - (match[0] in "]}")
        if not TOML_NESTING.holds(depth):
            raise ConfigError(f"{where}: {TOML_NESTING.subject} must be at most {TOML_NESTING.text}, got more at line {line}")
    TOML_NESTING.enforce(max(key.count(".") for key in _BETWEEN_KEYS.split(bare)), where, ConfigError, "parts of a dotted key")
    digits = _DIGITS.search(bare)
    if digits:
        line = bare.count("\n", 0, digits.start()) + 1
        TOML_DIGITS.enforce(len(digits[0]), f"{where}: line {line}", ConfigError)


def _placeholder(match: re.Match[str]) -> str:
    """Replacement of a text or a comment: a letter, so that dots still separate quoted keys, and the same number of line ends."""
    return "t" + "\n" * match[0].count("\n")


def _faults(table: Mapping[str, Any]) -> Iterator[str]:
    """Values of a table beyond a limit, without recursion."""
    waiting: list[tuple[tuple[int | str, ...], Any]] = [((), table)]
    while waiting:
        location, value = waiting.pop()
        parts: list[tuple[int | str, Any]] = []
        if isinstance(value, dict):
            parts = list(value.items())
            rules = [rule for key in value for rule in _text_rules(key)]
        elif isinstance(value, list):
            parts = list(enumerate(value))
            rules = [TOML_ITEMS.rule(len(value))]
        elif isinstance(value, str):
            rules = _text_rules(value)
        else:
            is_64_bit = not isinstance(value, int) or _SMALLEST <= value <= _LARGEST
            rules = [(is_64_bit, "a whole number must be -2^63 to 2^63 - 1, got one beyond")]
        broken = [rule for holds, rule in rules if not holds]
        if not TOML_NESTING.holds(len(location)):
            yield f"{key_path(location[:3])} …: {TOML_NESTING.subject} must be at most {TOML_NESTING.text}, got more"
        elif broken:
            yield f"{key_path(location)}: {broken[0]}" if location else broken[0]
        else:
            waiting += [((*location, name), part) for name, part in reversed(parts)]


def _text_rules(text: str) -> list[tuple[bool, str]]:
    return [TOML_TEXT.rule(len(text)), ("\0" not in text, f"a text must not hold a zero character, got {text[:40]!r}")]


def rig_table(path: Path) -> Mapping[str, Any]:
    """Contents of a rig file; for a world or model of Gazebo, a rig made from it.

    Raises:
        ConfigError: the file cannot be read, or is not TOML.
    """
    if path.suffix.lower() not in SDF_SUFFIXES:
        return read_toml(path)
    if not path.is_file():
        raise ConfigError(f"{path}: file not found")
    return {"name": path.stem, "scene": {"sdf": path.name}, "gazebo": {}}
