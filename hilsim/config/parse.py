"""Strict parsing of a TOML table into a frozen dataclass: unknown keys, wrong types and violated rules are all reported together.

Values are converted through JSON because pydantic's strict JSON mode accepts lists for tuples but never text for numbers.
"""

import difflib
import json
import re
import types
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from hilsim.config.toml_file import key_path, read_toml
from hilsim.errors import ConfigError
from hilsim.limits import TOML_FAULTS

__all__ = ["adapter_of", "collect_faults", "key_path", "parse_table", "read_toml"]

T = TypeVar("T")
Location = tuple[int | str, ...]

_PASSES = 20
_GONE = object()
_SURROGATE = re.compile("[\ud800-\udfff]")
_ENTRY = re.compile(r"\[[0-9]+\]")


def parse_table(kind: type[T], table: dict[str, Any], where: str) -> T:
    """Parse ``table`` as a ``kind``.

    Args:
        kind: Frozen dataclass.
        table: Table of ``read_toml``.
        where: Start of messages, usually the file.

    Raises:
        ConfigError: the table has faults; the message names all, one per line.
    """
    value, faults = collect_faults(kind, table)
    if value is None:
        raise ConfigError("\n".join(f"{where}: {fault}" for fault in faults))
    return value


def collect_faults(kind: type[T], table: dict[str, Any]) -> tuple[T | None, list[str]]:
    """Parse a table; returns ``(value, [])``, or ``(None, faults)`` with one sentence per fault.

    A dataclass may have a class method ``completed(table) -> (table, faults)`` that fills in values determined by others.

    A dataclass's own rules run only when its parts are valid. So a faulty part is removed and the rest is checked again until nothing new is
    found: all faults of a rig are reported in one run. The number of reported faults is limited to a hundred.
    """
    adapter = adapter_of(kind)
    complete = getattr(kind, "completed", None)
    filled, contradictions = complete(table) if complete else (table, [])
    text = json.dumps(filled, default=str, ensure_ascii=False)
    lone = _SURROGATE.search(text)
    if lone:
        return None, [f"texts must be Unicode, got the lone surrogate {lone[0]!r}"]
    remaining = json.loads(text)
    removed: set[Location] = set()
    faults: dict[str, None] = dict.fromkeys(contradictions)
    for _ in range(_PASSES):
        try:
            value = adapter.validate_json(json.dumps(remaining), strict=True, extra="forbid")
        except ValidationError as error:
            for fault in error.errors()[: TOML_FAULTS.bound + 1]:
                location = _in_table(fault["loc"], remaining)
                is_absent = fault["type"] == "missing" and isinstance(fault["loc"][-1], str)
                if is_absent and location in removed:
                    location = location[:-1]  # the value was removed here: remove the table around it as well
                else:
                    holes = _holes(remaining, location, removed)
                    faults.update(dict.fromkeys(sentence for sentence in _sentences(fault, location, kind) if not _speaks_of(sentence, holes)))
                    location = location[:-1] if is_absent else location
                removed.add(location)
            if len(faults) > TOML_FAULTS.bound or () in removed or not _take_out(remaining, removed):
                break
        else:
            return (value, []) if not faults else (None, _named(faults))
    return None, _named(faults)


_adapters: dict[Any, TypeAdapter[Any]] = {}


def adapter_of(kind: type[T]) -> TypeAdapter[T]:
    """The parser of a dataclass, made once: making one takes more than ten milliseconds, using it a few microseconds."""
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


def _named(faults: Iterable[str]) -> list[str]:
    """Faults up to the limit, with a note if there are more."""
    named = list(faults)
    more = [f"more faults than {TOML_FAULTS.bound} were found: fix these first"] if len(named) > TOML_FAULTS.bound else []
    return named[: TOML_FAULTS.bound] + more


def _in_table(location: Iterable[int | str], table: Any) -> Location:
    """Part of pydantic's location that exists in the table (it also names union members), plus the first missing key."""
    found: list[int | str] = []
    node = table
    for part in location:
        if isinstance(node, dict) and isinstance(part, str):
            if part not in node and part == node.get("kind"):
                continue  # name of a union member
            found.append(part)
            node = node.get(part)
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            found.append(part)
            node = node[part]
    return tuple(found)


def _take_out(table: Any, locations: Iterable[Location]) -> bool:
    """Remove faulty values from their tables; a faulty item removes its whole list, but only when nothing smaller is left to remove.

    (Items keep their numbers that way, and all of a list's items have been checked by then.) Returns whether anything was removed.
    """
    taken = [_remove(table, location) for location in locations if isinstance(location[-1], str)]
    if not any(taken):
        taken = [_remove(table, location[:-1]) for location in locations if isinstance(location[-1], int)]
    return any(taken)


def _remove(table: Any, location: Location) -> bool:
    """Remove the key at a location from its table; False if it is already gone."""
    node: Any = table
    for part in location[:-1]:
        in_list = isinstance(node, list) and isinstance(part, int) and part < len(node)
        if not in_list and not (isinstance(node, dict) and part in node):
            return False
        node = node[part]
    return isinstance(node, dict) and node.pop(location[-1], _GONE) is not _GONE


def _holes(table: Any, location: Location, removed: set[Location]) -> set[str]:
    """Keys removed from the table at a location, which its rules would report as missing."""
    node: Any = table
    for part in location:
        if not (isinstance(node, dict) and part in node) and not (isinstance(node, list) and isinstance(part, int)):
            return set()
        node = node[part]  # type: ignore[index] # a list has an integer index
    inner = {str(place[len(location)]) for place in removed if len(place) > len(location) and place[: len(location)] == location}
    return {name for name in inner if isinstance(node, dict) and name not in node}


def _speaks_of(sentence: str, names: set[str]) -> bool:
    return any(re.search(rf"\b{re.escape(name)}\b", sentence.partition(", got ")[0]) for name in names)


def _sentences(fault: Any, location: Location, kind: type[Any]) -> list[str]:
    path = key_path(location)
    if fault["type"] == "value_error":
        return [f"{path + '.' if path else ''}{rule}" for rule in str(fault["ctx"]["error"]).split("; ")]
    return [_sentence(fault, path, location, kind)]


def _sentence(fault: Any, path: str, location: Location, kind: type[Any]) -> str:
    shown = _shown(fault["input"])
    match fault["type"]:
        case "unexpected_keyword_argument":
            text = f"{path}: unknown key{_suggestion(kind, location)}"
        case "missing" | "too_long" if isinstance(fault["input"], list) and (count := _length_at(kind, location)):
            text = f"{path} must have {count} entries, got {shown}"
        case "tuple_type" if isinstance(fault["input"], dict) and _is_of_tables(kind, location):
            text = f"{path} must be a list of tables, got one table: write [[{_ENTRY.sub('', path)}]]"
        case "missing" | "missing_keyword_only_argument":
            text = f"{path} must be given"
        case "union_tag_not_found" | "union_tag_invalid":
            text = _kind_sentence(f"{path}.kind", fault["ctx"])
        case "tuple_type" | "list_type":
            count = _length_at(kind, location)
            text = f"{path} must be a list{f' of {count} entries' if count else ''}, got {shown}"
        case "dataclass_type":
            text = f"{path or 'the file'} must be a table, got {shown}"
        case _:
            rule = str(fault["msg"]).removeprefix("Input should be ").removeprefix("a valid ")
            text = f"{path} must be {rule}, got {shown}"
    return text


def _kind_sentence(path: str, context: dict[str, Any]) -> str:
    """Fault of a table of several possible kinds that names none, or an unknown one."""
    if "tag" not in context:
        return f"{path} must be given"
    return f"{path} must be {' or '.join(context['expected_tags'].split(', '))}, got {_shown(context['tag'])}"


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _suggestion(kind: type[Any], location: Location) -> str:
    moved = _moved_to(kind, location)
    if moved:
        return f" (it is {moved} now)"
    known = _keys_at(kind, location[:-1])
    near = difflib.get_close_matches(str(location[-1]), known, n=1)
    if near:
        return f' (did you mean "{near[0]}"?)'
    return f" (known here: {', '.join(known)})" if known else ""


def _moved_to(kind: type[Any], location: Location) -> str:
    """New location of a former key, by its table's ``moved_keys``; empty if there is none."""
    tables = [hint for hint in _types_at(kind, location[:-1]) if is_dataclass(hint)]
    return next((moved[str(location[-1])] for table in tables if str(location[-1]) in (moved := getattr(table, "moved_keys", {}))), "")


def _keys_at(kind: Any, location: Sequence[int | str]) -> list[str]:
    """Permitted keys of the table at a location; for several possible kinds, those of all."""
    return list(dict.fromkeys(field.name for hint in _types_at(kind, location) if is_dataclass(hint) for field in fields(hint)))


def _length_at(kind: Any, location: Sequence[int | str]) -> int:
    """Required length of the list at a location; 0 for any."""
    lengths = {len(get_args(hint)) for hint in _types_at(kind, location) if get_origin(hint) is tuple and Ellipsis not in get_args(hint)}
    return lengths.pop() if len(lengths) == 1 else 0


def _is_of_tables(kind: Any, location: Sequence[int | str]) -> bool:
    """Whether a list of tables is required at a location."""
    return any(
        is_dataclass(entry) or get_origin(entry) is dict
        for hint in _types_at(kind, location)
        if get_origin(hint) is tuple
        for entry in _types_at(hint, [0])
    )


def _types_at(kind: Any, location: Sequence[int | str]) -> list[Any]:
    """Types of the value at a location: several for a union."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _types_at(parts[0], location)
    if origin in (Union, types.UnionType):
        return [found for part in parts for found in _types_at(part, location)]
    if not location:
        return [kind]
    if is_dataclass(kind):
        hint = get_type_hints(kind).get(str(location[0])) if isinstance(location[0], str) else None
        return _types_at(hint, location[1:]) if hint is not None else []
    if origin in (tuple, list):
        return _types_at(parts[0], location[1:]) if isinstance(location[0], int) else []
    return _types_at(parts[1], location[1:]) if origin is dict else []
