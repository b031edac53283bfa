"""Where kinds of parts are found: hilsim's own by ``registry.OWN_PARTS``, others' by the entry points of plug-ins.

A kind is imported when a rig has its table, so a rig without it pays nothing. Its class is ``config.part_kind.PartKind``, which knows rigs; rigs know kinds
through this module alone.
"""

from collections.abc import Iterable
from dataclasses import fields, make_dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

from hilsim.config.entry_points import PARTS, find, offered
from hilsim.errors import ConfigError
from hilsim.registry import OWN_PARTS

_found: dict[str, Any] = {}


def part_kind(table: str) -> Any:
    """Kind of the parts that a table of a rig requests, a ``PartKind``; None where there is none.

    Raises:
        ConfigError: several distributions have the kind, or it cannot be used; the message names them.
    """
    if table not in _found:
        if table in OWN_PARTS:
            folder = f"hilsim.parts.{OWN_PARTS[table].folder}"
            try:
                is_installed = find_spec(folder) is not None
            except ModuleNotFoundError:  # all of hilsim.parts is left out
                is_installed = False
            if not is_installed:
                return None
            _found[table] = import_module(f"{folder}.kind").KIND
        elif (found := find(PARTS, table, f"{table}:"[:80])) is not None:
            if getattr(found.thing, "table", None) != table:
                raise ConfigError(f'{table}: {found.origin} must give a hilsim.plugins.PartKind with table "{table}", got {found.thing!r}')
            _found[table] = found.thing
    return _found.get(table)


def own_kinds() -> tuple[Any, ...]:
    """All of hilsim's own kinds that are installed."""
    return tuple(filter(None, map(part_kind, OWN_PARTS)))


def known_kinds() -> tuple[Any, ...]:
    """Hilsim's own kinds, then those that have been found for a rig."""
    return tuple(dict.fromkeys((*own_kinds(), *_found.values())))


def found_kinds() -> tuple[Any, ...]:
    """Kinds that have been found for a rig of this process."""
    return tuple(_found.values())


def place(table: str, number: int) -> str:
    """Place of a table in the rig's file, for messages; ``table`` is that of a known kind, or a list."""
    return table if table in _found and not _found[table].is_list else f"{table}[{number}]"


def kinds_in(table: Iterable[str], spec: type[Any]) -> tuple[Any, ...]:
    """Kinds of the tables of a rig; with an unknown key all of hilsim's own, which messages then name.

    Args:
        table: Keys of the rig's file.
        spec: Dataclass of the tables that the core has.

    Raises:
        ConfigError: as ``part_kind`` does.
    """
    others = set(table) - {field.name for field in fields(spec)}
    foreign = others - {*OWN_PARTS, *_found}
    unknown = foreign.difference(offered(PARTS)) if foreign else foreign  # one search for all: each takes tens of milliseconds
    kinds = [None if name in unknown else part_kind(name) for name in sorted(others)]
    return tuple(kinds) if all(kinds) else tuple(dict.fromkeys((*own_kinds(), *filter(None, kinds))))


@cache
def with_tables(spec: type[Any], kinds: tuple[Any, ...]) -> type[Any]:
    """Dataclass of a rig's file: that of the core, with the tables of some kinds in place of its field ``parts``."""

    def parts(self: Any) -> dict[str, tuple[Any, ...]]:
        given = {kind.table: getattr(self, kind.table) for kind in kinds}
        return {name: value if isinstance(value, tuple) else (value,) for name, value in given.items() if value}

    tables = [(kind.table, tuple[kind.spec, ...], ()) if kind.is_list else (kind.table, kind.spec | None, None) for kind in kinds]  # type: ignore[name-defined]
    meanings = "".join(f"    {kind.table}: {' '.join(str(kind.__doc__).split())}\n" for kind in kinds)
    text = f"{str(spec.__doc__).partition(chr(10))[0]}\n\nAttributes:\n{meanings}"
    namespace = {"parts": property(parts), "__doc__": text}
    return make_dataclass(spec.__name__, [("parts", ClassVar[Any]), *tables], bases=(spec,), namespace=namespace, frozen=True, kw_only=True)
