"""The text of a rig's file with edited objects: every line that no edit concerns stays as it is, byte for byte.

tomlkit writes a table in the form that it has, with its comments. It is given one table at a time, because with the tables of a kind apart from each other
(``[[scene.box]]``, ``[[sensor]]``, ``[[scene.box]]``) it loses removals. What comes out is read again, and must be what was meant.
"""

import copy
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hilsim.config.toml_file import TEXT_OR_COMMENT
from hilsim.config.toml_text import toml_text
from hilsim.errors import ConfigError

Row = tuple[str, int]
"""Kind of an object and its number among those of its kind."""

_LINE = re.compile(r"[^\n]*\n?")


class Header(NamedTuple):
    """A table's header.

    Attributes:
        start: Place of its line in the text.
        path: Names in it.
        is_entry: Whether it begins an entry of a list of tables.
    """

    start: int
    path: tuple[str, ...]
    is_entry: bool


class Table(NamedTuple):
    """A table of a list, with the tables within it.

    Attributes:
        start: Place of its header's line.
        stop: End of its last line that is neither empty nor a comment only.
    """

    start: int
    stop: int


def edited_text(text: str, changed: Mapping[Row, Mapping[str, Any] | None], added: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Text of a rig's file with other objects.

    Args:
        text: Text of the file.
        changed: New table of each object that is another one; None: it is removed.
        added: Kinds and tables of new objects.

    Raises:
        ConfigError: the text cannot be written like this, or tomlkit is not installed.
    """
    if not changed and not added:
        return text
    meant = _meant(tomllib.loads(text), changed, added)
    for in_form in (True, False):
        edited = _edited(text, changed, added, in_form=in_form)
        try:
            if _scene_of(tomllib.loads(edited)) == meant:
                return edited
        except tomllib.TOMLDecodeError:
            continue
    raise ConfigError(
        "the file's tables of [scene] must be written as [[scene.box]] and the like for edits to be saved in it: save the script instead"
    )


def _edited(text: str, changed: Mapping[Row, Mapping[str, Any] | None], added: Sequence[tuple[str, Mapping[str, Any]]], *, in_form: bool) -> str:
    scene = tomllib.loads(text).get("scene", {})
    tables = {kind: _tables(text, kind) for kind in {kind for kind, _ in changed} | {kind for kind, _ in added}}
    inline = {kind for kind, found in tables.items() if len(found) != len(scene.get(kind, []))}
    if inline:
        text = _with_inline(text, {row: table for row, table in changed.items() if row[0] in inline}, [item for item in added if item[0] in inline])
        tables = {kind: _tables(text, kind) for kind in tables.keys() - inline}
    cuts: list[tuple[int, int, str]] = []
    for (kind, row), table in changed.items():
        if kind in inline:
            continue
        place = tables[kind][row]
        if table is None:
            cuts.append((*_with_gap(text, place), ""))
        else:
            cuts.append((place.start, place.stop, _rewritten(text[place.start : place.stop], kind, scene[kind][row], table, in_form=in_form)))
    new = [_new_table(kind, table) for kind, table in added if kind not in inline]
    if new:
        at = _end_of_scene(text)
        gap = "" if not text[:at].strip() else "\n" if text[:at].endswith("\n") else "\n\n"
        cuts.append((at, at, gap + "\n".join(new)))
    line_end = "\r\n" if "\r\n" in text else "\n"
    for start, stop, piece in sorted(cuts, reverse=True):
        text = text[:start] + re.sub(r"\r?\n", lambda _: line_end, piece) + text[stop:]
    return text


def _meant(
    table: Mapping[str, Any], changed: Mapping[Row, Mapping[str, Any] | None], added: Iterable[tuple[str, Mapping[str, Any]]]
) -> dict[str, Any]:
    """The tables that the edited text must have."""
    whole = copy.deepcopy(dict(table))
    scene = whole.setdefault("scene", {})
    for (kind, row), new in changed.items():
        scene[kind][row] = new
    for kind in {kind for kind, _ in changed}:
        scene[kind] = [new for new in scene[kind] if new is not None]
    for kind, new in added:
        scene.setdefault(kind, []).append(new)
    return _scene_of(whole)


def _scene_of(table: Mapping[str, Any]) -> dict[str, Any]:
    """A rig's table without empty lists and an empty table of the scene, which are written in several ways."""
    scene = {key: value for key, value in table.get("scene", {}).items() if value != []}
    return {**{key: value for key, value in table.items() if key != "scene"}, **({"scene": scene} if scene else {})}


def _headers(text: str) -> list[Header]:
    """Headers of a text that is valid TOML."""
    bare = TEXT_OR_COMMENT.sub(lambda match: "".join("\n" if letter == "\n" else "t" for letter in match[0]), text)
    found, depth = [], 0
    for match in _LINE.finditer(bare):
        line = match[0].strip()
        if not match[0]:
            break
        if depth == 0 and line.startswith("["):
            is_entry = line.startswith("[[")
            original = text[match.start() : match.end()].strip()
            inner = _between_brackets(original, bare[match.start() : match.end()].strip(), 2 if is_entry else 1)
            found.append(Header(match.start(), inner, is_entry))
        else:
            depth += sum((letter in "[{") - (letter in "]}") for letter in line)
    return found


def _between_brackets(original: str, bare: str, count: int) -> tuple[str, ...]:
    node: Any = tomllib.loads(original[: bare.index("]") + count])
    names: list[str] = []
    while isinstance(node, dict | list) and node:
        node = node[0] if isinstance(node, list) else node
        if not node:
            break
        (name, node), *_ = node.items()
        names.append(name)
    return tuple(names)


def _tables(text: str, kind: str) -> list[Table]:
    """The tables ``[[scene.KIND]]`` of a text, in their order."""
    headers = _headers(text)
    found = []
    for number, header in enumerate(headers):
        if header.path != ("scene", kind) or not header.is_entry:
            continue
        end = len(text)
        for other in headers[number + 1 :]:
            if other.path[:2] != header.path or len(other.path) == 2:
                end = other.start
                break
        found.append(Table(header.start, _end_of_content(text, header.start, end)))
    return found


def _end_of_content(text: str, start: int, end: int) -> int:
    """End of the last line before ``end`` that is neither empty nor only a comment."""
    lines = [(match.end(), match[0].strip()) for match in _LINE.finditer(text, start, end)]
    return max((stop for stop, line in lines if line and not line.startswith("#")), default=end)


def _with_gap(text: str, place: Table) -> tuple[int, int]:
    """Place of a table with the empty line before it, if another one or nothing follows."""
    after = _LINE.match(text, place.stop)
    is_open = after is None or not after[0].strip()
    before = text.rfind("\n", 0, max(place.start - 1, 0)) + 1
    is_gap = place.start > 0 and not text[before : place.start].strip()
    return (before if is_open and is_gap else place.start), place.stop


def _end_of_scene(text: str) -> int:
    """Place behind the last table of the scene; the end of a text without one."""
    headers = _headers(text)
    last = max((number for number, header in enumerate(headers) if header.path[:1] == ("scene",)), default=None)
    if last is None:
        return len(text)
    end = headers[last + 1].start if last + 1 < len(headers) else len(text)
    return _end_of_content(text, headers[last].start, end)


def _rewritten(piece: str, kind: str, former: Mapping[str, Any], table: Mapping[str, Any], *, in_form: bool) -> str:
    """Text of one table with other keys."""
    if not in_form:
        return _new_table(kind, table)
    tomlkit = _tomlkit()
    document = tomlkit.parse(piece)
    entry = document["scene"][kind][0]
    for key in former.keys() - table.keys() | ({"motion"} if former.get("motion") != table.get("motion") else set()):
        entry.pop(key, None)
    for key, value in table.items():
        if key != "motion" and former.get(key) != value:
            entry[key] = value
    written: str = tomlkit.dumps(document)
    if "motion" in table and former.get("motion") != table["motion"]:
        written = written.rstrip("\r\n") + "\n" + _motion(kind, table["motion"])
    return written if written.endswith("\n") else written + "\n"


def _new_table(kind: str, table: Mapping[str, Any]) -> str:
    plain = {key: value for key, value in table.items() if key != "motion"}
    motion = _motion(kind, table["motion"]) if "motion" in table else ""
    return f"[[scene.{kind}]]\n{table_lines(plain)}{motion}"


def _motion(kind: str, motion: Mapping[str, Any]) -> str:
    waypoints = "".join(f"    {_inline(waypoint)},\n" for waypoint in motion["waypoints"])
    rest = table_lines({key: value for key, value in motion.items() if key != "waypoints"})
    return f"[scene.{kind}.motion]\n{rest}waypoints = [\n{waypoints}]\n"


def table_lines(table: Mapping[str, Any]) -> str:
    """Lines of a table: a key with its value each, with plain keys without quotes."""
    return "".join(f"{_assigned(key, value)}\n" for key, value in table.items())


def _assigned(key: str, value: Any) -> str:
    """``key = value``."""
    written = toml_text({key: 0 if isinstance(value, Mapping) else value}).rstrip("\n")
    if isinstance(value, Mapping):
        written = written.removesuffix("0") + _inline(value)
    return re.sub(r'^"([A-Za-z0-9_-]+)" = ', r"\1 = ", written)


def _inline(table: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(_assigned(key, value) for key, value in table.items()) + " }"


def _with_inline(text: str, changed: Mapping[Row, Mapping[str, Any] | None], added: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Text whose lists of objects within ``[scene]`` (``box = [{ … }]``) have other entries."""
    tomlkit = _tomlkit()
    document = tomlkit.parse(text)
    scene = document["scene"]
    for (kind, row), table in sorted(changed.items(), key=lambda item: item[0], reverse=True):
        if table is None:
            del scene[kind][row]
        else:
            scene[kind][row] = _inline_item(table)
    for kind, table in added:
        scene[kind].append(_inline_item(table))
    written: str = tomlkit.dumps(document)
    return written


def _inline_item(table: Mapping[str, Any]) -> Any:
    item = _tomlkit().inline_table()
    item.update(table)
    return item


def _tomlkit() -> Any:
    try:
        import tomlkit  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError("saving a rig requires the package tomlkit (pip install 'hilsim-lidar[view]')") from error
    return tomlkit
