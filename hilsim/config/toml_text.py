"""Writing of a table as TOML text, for rigs made by a program. One line per top-level key; ``read_toml`` reads the same table back."""

import json
import math
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from hilsim.config.toml_file import key_path
from hilsim.errors import ConfigError


def toml_text(table: Mapping[str, Any]) -> str:
    """TOML text of a table of texts, numbers, booleans, paths, sequences (also NumPy arrays and scalars) and tables.

    Raises:
        ConfigError: TOML cannot represent a value; the message names its location.
    """
    return "".join(f"{_key(key, ())} = {_value(value, (key,))}\n" for key, value in table.items())


def setting_text(key: str, value: Any) -> str:
    """``KEY=VALUE`` for ``--set``.

    Raises:
        ConfigError: TOML cannot represent the value.
    """
    return f"{key}={_value(value, (key,))}"


def _key(key: object, place: tuple[int | str, ...]) -> str:
    if not isinstance(key, str):
        raise ConfigError(f"{key_path(place) or 'a rig'}: a key must be a text, got {key!r}")
    return _text(key)


def _value(value: Any, place: tuple[int | str, ...]) -> str:
    plain = value.tolist() if hasattr(value, "tolist") else value  # NumPy's arrays and scalars
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, str | PathLike):
        return _text(str(fspath(plain)))
    if isinstance(plain, int):
        return str(int(plain))
    if isinstance(plain, float):
        return repr(plain) if math.isfinite(plain) else f"{plain}"
    if isinstance(plain, Mapping):
        return "{ " + ", ".join(f"{_key(key, place)} = {_value(part, (*place, key))}" for key, part in plain.items()) + " }"
    if isinstance(plain, list | tuple):
        return "[" + ", ".join(_value(part, (*place, number)) for number, part in enumerate(plain)) + "]"
    raise ConfigError(f"{key_path(place)} must be a text, a number, a truth value, a list or a table, got {value!r}")


def _text(text: str) -> str:
    """Basic string: JSON's escapes are valid in TOML too, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
