"""Changes of a rig by the command line: ``--to``, ``--no-noise`` and ``--set``, applied to the rig's table before it is checked, so that all rules apply to them."""

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hilsim.config.part_tables import own_kinds
from hilsim.config.places import did_you_mean
from hilsim.config.profiles import find_profile, read_profile
from hilsim.config.toml_file import key_path, toml_value
from hilsim.errors import ConfigError

_KEY = re.compile(r"[A-Za-z0-9_-]+(\[[0-9]{1,6}\])*(\.[A-Za-z0-9_-]+(\[[0-9]{1,6}\])*)*")
_PART = re.compile(r"[A-Za-z0-9_-]+|(?<=\[)[0-9]+(?=\])")
Location = tuple[int | str, ...]


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Command-line options that change a rig; a reload applies them again.

    Attributes:
        to: ``HOST`` or ``HOST:PORT``, destination of all sensors and parts that send; empty: as in the rig.
        no_noise: Whether parts send the contents of their files, or what they measure, without noise.
        settings: ``KEY=VALUE`` each, applied in order after the others; the key as printed by ``hilsim check``, or with an entry's name in place of its number
            (``sensor.roof.sub_rays=1``); the value as in TOML, and what is not TOML as text.
    """

    to: str = ""
    no_noise: bool = False
    settings: tuple[str, ...] = ()

    def naming(self, host: str) -> str:
        """Options that name a host, in brackets; empty if none does."""
        options = [f"--to {self.to}"] if self.to.partition(":")[0] == host else []
        options += [f"--set {text}" for text in self.settings if text.partition("=")[2].strip(" \"'") == host]
        return f" ({', '.join(options)})" if options else ""

    def made_in(self, table: Mapping[str, Any], directory: Path, kinds: Sequence[Any] = ()) -> "Changed":
        """Apply the changes to a rig's table; returns the table and the faults.

        Args:
            table: Table of the rig file; not modified.
            directory: Directory of the rig, for the profiles it names.
            kinds: Kinds of parts in the table, a ``PartKind`` each.
        """
        changed = Changed(table=copy.deepcopy(dict(table)), directory=directory, kinds=kinds)
        if self.to:
            changed.send(self.to)
        if self.no_noise:
            changed.silence()
        for text in self.settings:
            changed.set(text)
        return changed


@dataclass(kw_only=True)
class Changed:
    """A table with changes applied.

    Attributes:
        table: Changed table.
        directory: Directory of the rig.
        faults: Options that could not be applied, one sentence each.
        kinds: Kinds of parts in the table.
        options: Option that set the value, by location.
    """

    table: dict[str, Any]
    directory: Path
    kinds: Sequence[Any] = ()
    faults: list[str] = field(default_factory=list)
    options: dict[Location, str] = field(default_factory=dict)

    def send(self, to: str) -> None:
        """Apply ``--to``."""
        option = f"--to {to}"
        host, colon, port = to.rpartition(":") if ":" in to else (to, "", "")
        if not host or (colon and not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535)):
            self.faults.append(f'--to must be HOST or HOST:PORT with a port of 1 to 65535, got "{to}"')
            return
        places: list[tuple[Location, Location]] = []
        for name, (address, number) in senders(self.kinds).items():
            places += [((*at, *address), (*at, *number) if number else ()) for at, _ in self._entries(name)]
        if not places:
            *others, last = (f"a {name}" for name in senders(own_kinds()))
            self.faults.append(f"{option}: the rig must have {', '.join(others)} or {last} to send, got none")
        for address_at, port_at in places:
            self._put(address_at, host, option)
            if port and port_at:
                self._put(port_at, int(port), option)

    def silence(self) -> None:
        """Apply ``--no-noise``."""
        places = [(*at, *key) for kind in self.kinds for at, entry in self._entries(kind.table) for key in kind.noise(entry)]
        if not places:
            names = " or a ".join(kind.table for kind in own_kinds() if any(kind.noise({})))
            self.faults.append(f"--no-noise: the rig must have a {names}, got none")
        for place in places:
            self._put(place, 0.0, "--no-noise")

    def set(self, text: str) -> None:
        """Apply ``--set``."""
        key, equals, value = text.partition("=")
        option = f"--set {text}"
        key = key.strip()
        if not equals or not _KEY.fullmatch(key):
            self.faults.append(f"{option}: must be KEY=VALUE with a key as `hilsim check` prints it, like sensor[0].rotation_rate_rpm=1200")
            return
        try:
            self._put(self._located(key), toml_value(value.strip(), option), option)
        except ConfigError as error:
            self.faults.append(str(error) if str(error).startswith("--set") else f"{option}: {error}")

    def named(self, fault: str) -> str:
        """Fault of the changed table, followed by the options that set the value."""
        options = [option for place, option in self.options.items() if _is_about(fault, place)]
        return f"{fault} ({', '.join(dict.fromkeys(options))})" if options else fault

    def _entries(self, name: str) -> list[tuple[Location, dict[str, Any]]]:
        """Tables of a name, or the one, with their locations; none where there is something else."""
        found = self.table.get(name)
        if isinstance(found, dict):
            return [((name,), found)]
        return [((name, number), entry) for number, entry in enumerate(found) if isinstance(entry, dict)] if isinstance(found, list) else []

    def _located(self, key: str) -> Location:
        """Location of a key, with numbers in place of names.

        Raises:
            ConfigError: no entry has that name or number.
        """
        parts: list[int | str] = []
        for match in _PART.finditer(key):
            node = self._at(tuple(parts))
            is_number = match.start() > 0 and key[match.start() - 1] == "["
            part: int | str = int(match[0]) if is_number else match[0]
            if isinstance(node, list):
                part = _entry(node, part, key_path(tuple(parts)))
            elif is_number:
                raise ConfigError(f"{key_path(tuple(parts))} must be a list for [{part}], got {'a table' if isinstance(node, dict) else 'none'}")
            elif part == "model" and len(parts) == 2 and parts[0] == "sensor":
                part = "override"  # `check` prints the profile with the rig's override applied
            parts.append(part)
        return tuple(parts)

    def _at(self, place: Location) -> Any:
        node: Any = self.table
        for part in place:
            node = node.get(part) if isinstance(node, dict) else node[part] if isinstance(node, list) and isinstance(part, int) else None
        return node

    def _put(self, place: Location, value: Any, option: str) -> None:
        """Set a value, and create missing tables around it.

        Raises:
            ConfigError: a value other than a table is around it.
        """
        node: Any = self.table
        for depth, part in enumerate(place[:-1]):
            if isinstance(node, dict) and part not in node:
                node[part] = self._profile_part(place[: depth + 1])
            node = node[part]
            if not isinstance(node, dict | list):
                raise ConfigError(f"{key_path(place[: depth + 1])} must be a table to have {place[depth + 1]}, got {node!r}")
        node[place[-1]] = value
        self.options[place] = option

    def _profile_part(self, place: Location) -> dict[str, Any]:
        """Table of the profile, for a location in an override that replaces part of it; otherwise empty."""
        if len(place) != 4 or place[0] != "sensor" or place[2] != "override":
            return {}
        try:
            profile = read_profile(find_profile("sensors", str(self._at(place[:2]).get("profile", "vlp16")), self.directory))
        except ConfigError:
            return {}  # the rig's own fault, reported by its check
        found = profile.get(str(place[3]), {})
        return found if isinstance(found, dict | list) else {}  # type: ignore[return-value] # a list of tables is walked as a table is


def senders(kinds: Iterable[Any]) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Tables that have destinations: the keys that lead to the address within an entry, and those that lead to the port, if it has one."""
    sending = sorted((kind for kind in kinds if kind.destination), key=lambda kind: not kind.is_sensor)
    of_parts = {kind.table: (kind.destination, kind.destination_port) for kind in sending}
    return {"sensor": (("network", "destination"), ("network", "data_port")), **of_parts}


def _entry(entries: list[Any], part: int | str, where: str) -> int:
    """Index of an entry of a list of tables, from a number or a name."""
    if isinstance(part, int):
        if part < len(entries):
            return part
        raise ConfigError(f"{where} must have more than {part} entries for {where}[{part}], got {len(entries)}")
    names = [str(entry.get("name", "")) if isinstance(entry, dict) else "" for entry in entries]
    if names.count(part) == 1:
        return names.index(part)
    known = [name for name in names if name]
    hint = did_you_mean(part, known) or (f" (there are: {', '.join(known)})" if known else f" (they have no names: write {where}[0])")
    raise ConfigError(f'{where} must have one entry named "{part}", got {names.count(part)}{hint}')


def _is_about(fault: str, place: Location) -> bool:
    """Whether a fault concerns a location or one inside it."""
    return any(re.search(rf"(?<![\w.\]]){re.escape(path)}(?![\w-])", fault) for path in _spelled(place))


def _spelled(place: Location) -> Iterator[str]:
    """Spellings of a location in faults."""
    yield key_path(place)
    if len(place) > 3 and place[2] == "override":
        yield f"{key_path(place[:3])}: {key_path(place[3:])}"
