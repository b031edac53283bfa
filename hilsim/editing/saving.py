"""Saving of a rig and of a script: complete files, or none."""

import json
import os
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hilsim.config.places import profiles_directory
from hilsim.config.rig import rig_of_table
from hilsim.config.script import parse_change
from hilsim.config.toml_file import check_limits
from hilsim.editing.rig_text import Row, edited_text, table_lines
from hilsim.editing.things import PLACE_KEYS, Thing
from hilsim.errors import ConfigError
from hilsim.limits import SCRIPT_CHANGES, TOML_FILE_BYTES, TOML_ITEMS
from hilsim.world.assets.scenes import scene_objects
from hilsim.world.geometry.poses import Pose

Placed = Mapping[str, tuple[Row | None, Thing]]
"""Every object that there is, and its table in the file, by ``live_name``."""
_SAME_M = 1e-9


@dataclass(frozen=True, kw_only=True)
class RigFile:
    """A rig's file as it was read.

    Attributes:
        path: Path of the file.
        text: Its contents.
    """

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> "RigFile":
        """Read a file.

        Raises:
            ConfigError: it cannot be read.
        """
        try:
            return cls(path=path, text=path.read_bytes().decode("utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: must be a readable TOML file, got {error}") from error


def save_rig(
    file: RigFile, path: Path, changed: Mapping[Row, Thing | None], added: Sequence[Thing], placed: Placed, *, is_copy: bool = False
) -> RigFile:
    """Write a rig with edited objects.

    An object that the file puts on the ground, and no edit has moved, gets its present place where it would stand elsewhere in the edited scene.

    Args:
        file: The rig's file as it was read.
        path: File to write.
        changed: Objects of the file that an edit has changed; None: removed.
        added: New objects.
        placed: Every object.
        is_copy: Whether ``path`` is another file.

    Raises:
        AssetError: the edited scene names a file that cannot be used.
        ConfigError: the file cannot be written, or not be loaded then.
    """
    if not is_copy:
        _check_own(file)
    tables = tomllib.loads(file.text).get("scene", {})
    new = {row: _table(tables[row[0]][row[1]], thing) if thing is not None else None for row, thing in changed.items()}
    more = [(thing.kind, _table({}, thing)) for thing in added]
    text = edited_text(file.text, new, more)
    strayed = _strayed(text, path, tables, new, placed)
    if strayed:
        new.update({row: _table(tables[row[0]][row[1]], thing) for row, thing in strayed.items()})
        text = edited_text(file.text, new, more)
        _strayed(text, path, tables, new, placed)
    _write(path, text, None if is_copy else file)
    return RigFile(path=path, text=text)


def write_script(path: Path, changes: Sequence[Mapping[str, Any]]) -> None:
    """Write timed changes as a script: TOML, or JSON lines where the path ends in ``.jsonl``.

    Raises:
        ConfigError: there are too many for the format, or the file cannot be written.
    """
    SCRIPT_CHANGES.enforce(len(changes), str(path), ConfigError)
    if path.suffix == ".jsonl":
        _write(path, "".join(json.dumps(change) + "\n" for change in changes), None)
        return
    for change in changes:
        parse_change(change)
    text = "\n".join("[[change]]\n" + table_lines(change) for change in changes)
    if len(text.encode()) > TOML_FILE_BYTES.bound or not TOML_ITEMS.holds(len(changes)):
        raise ConfigError(
            f"{path}: a script in TOML must have at most {TOML_ITEMS.text} changes and {TOML_FILE_BYTES.text}, got {len(changes)}: choose a name in .jsonl"
        )
    _write(path, text, None)


def named_path(directory: Path, name: str, suffixes: tuple[str, ...], *, replace_file: bool) -> Path:
    """Path of a new file in a directory.

    Raises:
        ConfigError: the name leaves the directory or has another suffix, or the file exists and must not be replaced.
    """
    is_plain = Path(name).name == name and not name.startswith(".") and name.isprintable()
    path = directory / (name if is_plain else "rig.toml")
    rules = (
        (is_plain, f'name must be of a file in {directory}, without folders, got "{name[:200]}"'),
        (Path(name).suffix in suffixes, f'name must end in {" or ".join(suffixes)}, got "{name[:200]}"'),
        (replace_file or not is_plain or not path.exists(), f"{path}: must be a new file, got one that exists"),
        (not path.is_symlink(), f"{path}: must be a file, got a link"),
    )
    faults = [message for holds, message in rules if not holds]
    if faults:
        raise ConfigError("\n".join(faults))
    return path


def _table(former: Mapping[str, Any], thing: Thing) -> dict[str, Any]:
    """Table of an object: its former keys in their order, then new ones."""
    place = thing.place()
    for key, rest in (("rotation_deg", [0.0, 0.0, 0.0]), ("position_m", [0.0, 0.0, 0.0])):
        if key in former:
            place.setdefault(key, rest)
    table = {key: place.get(key, value) for key, value in former.items() if key not in PLACE_KEYS or key in place}
    if former:
        return table | {key: value for key, value in place.items() if key not in table}
    motion = {"motion": place.pop("motion")} if "motion" in place else {}
    return {**place, **thing.keys, **motion}


def _strayed(text: str, path: Path, tables: Mapping[str, Any], new: Mapping[Row, Mapping[str, Any] | None], placed: Placed) -> dict[Row, Thing]:
    """Objects that the edited file would put elsewhere than they are, because the ground below them is another one.

    Raises:
        AssetError: the scene names a file that cannot be used.
        ConfigError: the text is no rig.
    """
    table = tomllib.loads(text)
    check_limits(table, str(path))
    rig = rig_of_table(table, path)
    objects, _ = scene_objects(rig.spec.scene, path.parent)
    names = Counter(thing.name for thing in objects)
    made_of = {thing.name: thing for thing in objects}
    found: dict[Row, Thing] = {}
    for row, thing in placed.values():
        if row is None or row in new or not tables[row[0]][row[1]].get("stand_on_ground"):
            continue
        gone = sum(kind == row[0] and number < row[1] and later is None for (kind, number), later in new.items())
        name = thing.name or f"{row[0]}[{row[1] - gone}]"
        made = made_of[name].placement
        if isinstance(made, Pose) and names[name] == 1:
            there = [at - zero for at, zero in zip(made.position_m, rig.spec.scene.origin_m, strict=True)]
            if any(abs(a - b) > _SAME_M for a, b in zip(there, thing.position_m, strict=True)):
                found[row] = thing
    return found


def _check_own(file: RigFile) -> None:
    """Refuse to overwrite a file that is not the user's, or another one by now.

    Raises:
        ConfigError: the file cannot be overwritten; the message has what to do.
    """
    path = file.path.resolve()
    if path.is_relative_to(profiles_directory().resolve()):
        raise ConfigError(f"{file.path}: must be a rig of your own, got a shipped one: save it under another name")
    if not path.exists() or RigFile.read(path).text != file.text:
        raise ConfigError(
            f"{file.path}: must be as it was when it was read, got a file that another program has changed:"
            " save under another name, or save the script, and load the rig again"
        )
    if not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        raise ConfigError(f"{file.path}: must be writable, got a read-only file: save it under another name")


def _write(path: Path, text: str, own: RigFile | None) -> None:
    """Write a file beside its place, and put it there when it is complete.

    Raises:
        ConfigError: it cannot be written, or was changed meanwhile.
    """
    path = path.resolve()
    waiting = ""
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        number, waiting = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(number, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        if own is not None:
            _check_own(own)
        Path(waiting).replace(path)
        waiting = ""
    except OSError as error:
        raise ConfigError(f"{path}: must be writable, got {error.strerror or error}") from error
    finally:
        if waiting:
            Path(waiting).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
