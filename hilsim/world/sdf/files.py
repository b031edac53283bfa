"""Resolution of file names in SDF: ``model://``, ``file://`` and paths, and the contents of an ``<include>``."""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from hilsim.errors import AssetError
from hilsim.limits import SDF_DEPTH, SDF_ELEMENTS, SDF_INCLUDES
from hilsim.world.sdf.elements import Element, Findings, read_elements, shown
from hilsim.world.sdf.specs import FileStamp
from hilsim.world.sdf.urdf import as_model

SEARCH_VARIABLES = ("GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "SDF_PATH", "GAZEBO_MODEL_PATH")
"""Environment variables with the search directories for models of Gazebo and its predecessors, separated by ``:``."""
_VERSIONS = tuple(f"1.{minor}" for minor in range(4, 13))
_BEFORE_RELATIVE_TO = frozenset({"1.4", "1.5", "1.6"})
"""Versions in which a pose's frame was an attribute ``frame``."""
NOTHING = (0, -1)
"""Time of change and size of a missing file."""
_MODEL_CONFIG = "model.config"
_REMOTE = frozenset({"http", "https", "fuel"})


def search_path(directories: Sequence[Path]) -> tuple[Path, ...]:
    """Given directories, followed by those of the environment."""
    named = (part for variable in SEARCH_VARIABLES for part in os.environ.get(variable, "").split(":") if part)
    return (*directories, *map(Path, named))


@dataclass(kw_only=True, eq=False)
class Files:
    """Finds files, and reads included ones.

    Attributes:
        search: Search directories for models.
        findings: Record of faults.
    """

    search: tuple[Path, ...]
    findings: Findings
    _including: list[Path] = field(default_factory=list)
    _included: int = 0
    _elements: int = 0
    _read: dict[Path, Element] = field(default_factory=dict)
    _sizes: dict[Path, int] = field(default_factory=dict)
    _stamps: dict[Path, FileStamp] = field(default_factory=dict)

    @property
    def stamps(self) -> tuple[FileStamp, ...]:
        """Stamps of all files that were searched for, at the time of the search."""
        return tuple(self._stamps.values())

    def find(self, asking: Element, uri: str) -> Path | None:
        """File or directory of a URI; None, with a fault of the requesting element, if there is none."""
        found, fault = self.look_for(asking, uri)
        if fault:
            asking.fault(fault)
        return found

    def look_for(self, asking: Element, uri: str) -> tuple[Path | None, str]:
        """File or directory of a URI, or None and the reason."""
        if not uri:
            return None, f"<{asking.tag}> must have a <uri>"
        scheme, separator, name = uri.partition("://")
        if not separator:
            scheme, name = "", uri
        if scheme in _REMOTE:
            return None, f"<uri> must be on this host (download the model, and name its directory in {SEARCH_VARIABLES[0]}), got {shown(uri)}"
        tried = list(dict.fromkeys(_resolved(place) for place in self._places(asking.file, scheme, unquote(name))))
        for place in tried:
            if self._is_there(place):
                return place, ""
        return None, f"<uri> must be an existing file, got {shown(uri)}, searched at {', '.join(shown(str(place)) for place in tried)}"

    def _is_there(self, place: Path) -> bool:
        """Whether a file or directory of that name exists; the name is recorded."""
        if place not in self._stamps:
            self._stamps[place] = stamp_of(place)
        return self._stamps[place] != (str(place), *NOTHING)

    def _places(self, file: Path, scheme: str, name: str) -> list[Path]:
        if name.startswith("/"):
            return [Path(name)]
        if scheme == "model":
            return [directory / name for directory in (*self.search, file.parent, file.parent.parent)]
        return [file.parent / name, *(directory / name for directory in self.search)]

    def root(self, path: Path) -> Element:
        """Root element ``<sdf>`` of a file.

        Raises:
            AssetError: the file is not a supported SDF file.
        """
        if path in self._read:
            return self._read[path]
        self._is_there(path)
        root = read_elements(path, self.findings)
        if root.tag == "robot":
            root = as_model(root)
        elif root.tag != "sdf":
            raise AssetError(f"{root.where}: must be an SDF file, which begins with <sdf>, or URDF with <robot>, got <{shown(root.tag)}>")
        version = root.attributes.get("version", "")
        if version not in _VERSIONS:
            raise AssetError(f'{root.where}: version must be {_VERSIONS[0]} to {_VERSIONS[-1]}, got "{shown(version)}"')
        for element in root.walk():
            if element.tag == "pose" and version in _BEFORE_RELATIVE_TO and "frame" in element.attributes:
                element.attributes.setdefault("relative_to", element.attributes["frame"])
        self._read[path], self._sizes[path] = root, sum(1 for _ in root.walk())
        return root

    def included(self, include: Element) -> Element | None:
        """The ``<model>``, ``<actor>`` or ``<light>`` of an ``<include>``; None, with a fault, if there is none."""
        uri = include.child("uri")
        if uri is None:
            include.fault("<include> must have a <uri>")
            return None
        place = self.find(include, uri.text)
        path = None if place is None else self._sdf_of(include, place)
        if path is None:
            return None
        if path in self._including:
            circle = (*self._including[self._including.index(path) :], path)
            include.fault(f"files must not include each other in a circle, got {' -> '.join(map(str, circle))}")
            return None
        self._included += 1
        SDF_INCLUDES.enforce(self._included, include.where, AssetError)
        SDF_DEPTH.enforce(len(self._including), include.where, AssetError, "nesting of files")
        try:
            root = self.root(path)
        except AssetError as error:
            self.findings.faults.append(f"{include.where} includes {error}")
            return None
        self._elements += self._sizes[path]
        SDF_ELEMENTS.enforce(self._elements, include.where, AssetError, "elements of all files that are included")
        found = root.child("model", "actor", "light")
        if found is None:
            include.fault(f"<uri> must be a model, an actor or a light, got {path} with none")
        return found

    def entered(self, path: Path) -> "_Entered":
        """Mark a file as being read while the block runs, so that a circular include is detected."""
        return _Entered(self._including, path)

    def _sdf_of(self, include: Element, place: Path) -> Path | None:
        """SDF file in a model's directory: the newest one in its ``model.config``."""
        if place.is_file():
            return place
        config = place / _MODEL_CONFIG
        self._is_there(config)
        if not config.is_file():
            include.fault(f"<uri> must be an SDF file or a model's directory with a {_MODEL_CONFIG}, got {place}")
            return None
        try:
            root = read_elements(config, self.findings)
        except AssetError as error:
            self.findings.faults.append(f"{include.where} includes {error}")
            return None
        offered = {sdf.attributes.get("version", _VERSIONS[0]): place / sdf.text for sdf in root.all("sdf") if sdf.text}
        known = [version for version in _VERSIONS if version in offered]
        if not known:
            got = shown(", ".join(offered)) or "none"
            include.fault(f"{config} must name an SDF file of version {_VERSIONS[0]} to {_VERSIONS[-1]}, got {got}")
            return None
        return _resolved(offered[known[-1]])


def stamp_of(place: Path) -> FileStamp:
    """Stamp of a file, which shows a change of it; for a directory, its existence."""
    try:
        state = place.stat()
    except (OSError, ValueError):  # also of a name that no file can have
        return str(place), *NOTHING
    return (str(place), 0, 0) if stat.S_ISDIR(state.st_mode) else (str(place), state.st_mtime_ns, state.st_size)


def _resolved(place: Path) -> Path:
    """Path without links and dots; unchanged if no file can have that name."""
    try:
        return place.resolve()
    except (OSError, RuntimeError, ValueError):
        return place


@dataclass
class _Entered:
    including: list[Path]
    path: Path

    def __enter__(self) -> None:
        self.including.append(self.path)

    def __exit__(self, *_: object) -> None:
        self.including.pop()
