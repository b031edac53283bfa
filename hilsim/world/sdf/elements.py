"""Elements of an SDF file with their lines and values: every fault is recorded, and reading continues with the default.

XML is read by Python's own expat. A document type is rejected, and with it every entity: no SDF file has one. Two violations of XML are accepted, because Gazebo's parser accepts
them and some of its own worlds contain them: ``--`` in a comment, and blanks before the declaration.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from xml.parsers import expat

from hilsim.errors import AssetError
from hilsim.limits import COORDINATE_M, SDF_BYTES, SDF_DEPTH, SDF_ELEMENTS
from hilsim.world.geometry.poses import Pose, mounting

T = TypeVar("T")

_UNIT_TOLERANCE = 1e-6
_TRUE, _FALSE = frozenset({"true", "1"}), frozenset({"false", "0"})
_MAX_DIGITS = 15
_SHOWN_CHARACTERS, _SHOWN_NAMES = 200, 100
_COMMENT, _COMMENT_END, _LITERAL_END = b"<!--", b"-->", b"]]>"
_HIDING = re.compile(rb"<!--|<!\[CDATA\[")
_LATE_DECLARATION = re.compile(rb"(\s+)(<\?xml[^>]*\?>)")


def shown(text: str) -> str:
    """A text of a file for a message: a long one is truncated."""
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}... ({len(text):,} characters)"


def row(names: list[str], between: str = ", ", most: int = _SHOWN_NAMES) -> str:
    """Names for a message: a long list is truncated."""
    left = len(names) - most
    return between.join(map(shown, names[:most])) + (f"{between}... ({left:,} more)" if left > 0 else "")


@dataclass(kw_only=True, eq=False)
class Findings:
    """Faults and unsupported parts of a world's files.

    Attributes:
        faults: Faults, one sentence each, with file and line.
        unsupported: Unsupported parts, one sentence each, with file and line.
        plugins: Names of plug-ins with their lines, by file; a file included twice is reported once.
    """

    faults: list[str] = field(default_factory=list)
    unsupported: list[str] = field(default_factory=list)
    plugins: dict[Path, dict[tuple[str, int], None]] = field(default_factory=dict)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Unsupported parts, each sentence once; the plug-ins of a file are one sentence."""
        plugins = (f"{file}: plug-ins do not run: {row([f'{name} (line {line})' for name, line in named])}" for file, named in self.plugins.items())
        return tuple(dict.fromkeys((*plugins, *self.unsupported)))


@dataclass(kw_only=True, eq=False)
class Element:
    """An element of a file.

    Attributes:
        tag: Name of the element.
        file: File of the element.
        line: Line in the file.
        findings: Record of faults.
        attributes: Attributes by name.
        children: Children in order.
        text: Text of the element itself, stripped.
    """

    tag: str
    file: Path
    line: int
    findings: Findings
    attributes: dict[str, str]
    children: "list[Element]" = field(default_factory=list)
    text: str = ""

    @property
    def where(self) -> str:
        """``file:line``, for messages."""
        return f"{self.file}:{self.line}"

    @property
    def name(self) -> str:
        """Value of the attribute ``name``; empty without one."""
        return self.attributes.get("name", "")

    def fault(self, text: str) -> None:
        """Record a fault of the element."""
        self.findings.faults.append(f"{self.where}: {text}")

    def unsupported(self, text: str) -> None:
        """Record that the element, or a value of it, is not supported."""
        self.findings.unsupported.append(f"{self.where}: {text}")

    def child(self, *tags: str) -> "Element | None":
        """First child with one of these names."""
        return next((child for child in self.children if child.tag in tags), None)

    def all(self, *tags: str) -> "Iterator[Element]":
        """Children with these names."""
        return (child for child in self.children if child.tag in tags)

    def walk(self) -> "Iterator[Element]":
        """The element and all elements within it."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting.extend(element.children)

    # -- values ------------------------------------------------------------------------------------------------------------------------

    def string(self, tag: str, default: str = "") -> str:
        """Text of a child."""
        child = self.child(tag)
        return default if child is None else child.text

    def number(self, tag: str, default: float, *, may_be_infinite: bool = False) -> float:
        """Number in a child."""
        return self._value(tag, default, lambda text: _number(text, may_be_infinite=may_be_infinite))

    def count(self, tag: str, default: int) -> int:
        """Whole number in a child, 0 or more."""
        return self._value(tag, default, _count)

    def boolean(self, tag: str, *, default: bool) -> bool:
        """Boolean in a child."""
        return self._value(tag, default, _boolean)

    def vector(self, tag: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """Numbers in a child, as many as the default has."""
        return self._value(tag, default, lambda text: _numbers(text, len(default)))

    def pairs(self, tag: str) -> tuple[tuple[float, float], ...]:
        """Two numbers in each child of a name."""
        found: list[tuple[float, float]] = []
        for child in self.all(tag):
            try:
                x, y = _numbers(child.text, 2)
            except ValueError as error:
                child.fault(f"<{tag}> {error}")
            else:
                found.append((x, y))
        return tuple(found)

    def pose(self) -> Pose:
        """Pose in the child ``pose``, in the frame that it is relative to; the identity without one."""
        child = self.child("pose")
        if child is None or not child.text:
            return Pose()
        try:
            return _pose(child.text, child.attributes)
        except ValueError as error:
            child.fault(f"<pose> {error}")
            return Pose()

    def _value(self, tag: str, default: T, parse: Callable[[str], T]) -> T:
        child = self.child(tag)
        if child is None or not child.text:
            return default
        try:
            return parse(child.text)
        except ValueError as error:
            child.fault(f"<{tag}> {error}")
            return default


def read_elements(path: Path, findings: Findings) -> Element:
    """Read the root element of an XML file.

    Raises:
        AssetError: the file cannot be read, is not XML, or exceeds a limit.
    """
    try:
        if path.exists() and not path.is_file():
            raise AssetError(f"{path}: must be a file, got {'a directory' if path.is_dir() else 'a pipe or a device'}")
        SDF_BYTES.enforce(path.stat().st_size, str(path), AssetError)
        with path.open("rb") as file:
            text = file.read(SDF_BYTES.bound + 1)
    except (OSError, ValueError) as error:
        raise AssetError(f"{path}: must be a file that can be read, got {getattr(error, 'strerror', None) or error}") from error
    SDF_BYTES.enforce(len(text), str(path), AssetError)
    return _Builder(path, findings).root_of(_as_xml(text))


def _as_xml(text: bytes) -> bytes:
    """Text without its comments, with as many lines, and with the declaration first."""
    kept, at = [], 0
    for hiding in _HIDING.finditer(text):
        if hiding.start() < at:
            continue
        is_comment = hiding[0] == _COMMENT
        end = text.find(_COMMENT_END if is_comment else _LITERAL_END, hiding.end()) + len(_COMMENT_END)
        if end < hiding.end():
            break
        kept += [text[at : hiding.start()], b"\n" * text.count(b"\n", hiding.start(), end) if is_comment else text[hiding.start() : end]]
        at = end
    plain = b"".join((*kept, text[at:]))
    late = _LATE_DECLARATION.match(plain)
    return plain if late is None else late[2] + late[1] + plain[late.end() :]


class _Builder:
    """Builds elements from expat's events."""

    def __init__(self, path: Path, findings: Findings) -> None:
        self._path, self._findings = path, findings
        self._open: list[Element] = []
        self._texts: list[list[str]] = []
        self._root: Element | None = None
        self._elements = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = lambda text: self._texts[-1].append(text) if self._texts else None
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype

    def root_of(self, text: bytes) -> Element:
        try:
            self._parser.Parse(text, True)  # noqa: FBT003 - expat's
        except expat.ExpatError as error:
            raise AssetError(f"{self._path}:{error.lineno}: must be XML: {expat.ErrorString(error.code)}") from error
        except (LookupError, ValueError) as error:
            raise AssetError(f"{self._path}:1: must have a supported encoding, such as UTF-8: {error}") from error
        if self._root is None:
            raise AssertionError("expat accepts no document without an element")
        return self._root

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        self._elements += 1
        SDF_ELEMENTS.enforce(self._elements, f"{self._path}:{line}", AssetError)
        SDF_DEPTH.enforce(len(self._open) + 1, f"{self._path}:{line}", AssetError)
        made = Element(tag=tag, file=self._path, line=line, findings=self._findings, attributes=attributes)
        if self._open:
            self._open[-1].children.append(made)
        else:
            self._root = made
        self._open.append(made)
        self._texts.append([])

    def _end(self, _tag: str) -> None:
        self._open.pop().text = "".join(self._texts.pop()).strip()

    def _refuse_doctype(self, *_: object) -> None:
        raise AssetError(f"{self._path}:{self._parser.CurrentLineNumber}: must have no document type, for it may define entities without end")


def _number(text: str, *, may_be_infinite: bool = False) -> float:
    try:
        value = float(text.replace("_", "no number"))
    except ValueError:
        raise ValueError(f'must be a number, got "{shown(text)}"') from None
    if math.isnan(value) or (math.isinf(value) and not may_be_infinite):
        raise ValueError(f'must be a finite number, got "{shown(text)}"')
    return value


def _numbers(text: str, count: int) -> tuple[float, ...]:
    parts = text.split()
    if len(parts) != count:
        raise ValueError(f'must be {count} numbers, got "{shown(text)}"')
    return tuple(map(_number, parts))


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f'must be a whole number of 0 or more, got "{shown(text)}"')
    if len(text) > _MAX_DIGITS:
        raise ValueError(f'must have at most {_MAX_DIGITS} digits, got "{shown(text)}"')
    return int(text)


def _boolean(text: str) -> bool:
    if text.lower() not in _TRUE | _FALSE:
        raise ValueError(f'must be true or false, got "{shown(text)}"')
    return text.lower() in _TRUE


def _pose(text: str, attributes: dict[str, str]) -> Pose:
    kind = attributes.get("rotation_format", "euler_rpy")
    if kind not in {"euler_rpy", "quat_xyzw"}:
        raise ValueError(f'rotation_format must be euler_rpy or quat_xyzw, got "{shown(kind)}"')
    x, y, z, *turns = _numbers(text, 7 if kind == "quat_xyzw" else 6)
    if not all(COORDINATE_M.holds(abs(value)) for value in (x, y, z)):
        raise ValueError(f'must have coordinates of at most {COORDINATE_M.text}, got "{shown(text)}"')
    if kind == "quat_xyzw":
        qx, qy, qz, qw = turns
        length = math.hypot(*turns)
        if not _UNIT_TOLERANCE <= length < math.inf:
            raise ValueError(f'must have a quaternion that is not zero, got "{shown(text)}"')
        return Pose(position_m=(x, y, z), orientation=(qw / length, qx / length, qy / length, qz / length))
    roll, pitch, yaw = turns if _boolean(attributes.get("degrees", "false")) else map(math.degrees, turns)
    if not all(map(math.isfinite, (roll, pitch, yaw))):
        raise ValueError(f'must have finite angles, got "{shown(text)}"')
    return mounting((x, y, z), (roll, pitch, yaw))
