"""Wavefront OBJ, read strictly: polygons, names of objects, groups and materials; libraries, texture coordinates, normals, lines and points are ignored.

trimesh is not used, because it drops faces that it cannot read and loses the names of materials whose library is missing.
The format: the Advanced Visualizer manual's appendix B1, "Object Files".
"""

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO
from math import isfinite
from pathlib import Path

import numpy as np

from hilsim.errors import AssetError
from hilsim.limits import FACE_CORNERS, LINE_BYTES, SCENE_TRIANGLES
from hilsim.world.assets.mesh_parts import MeshFile, MeshPart, read_bytes
from hilsim.world.scene.polygons import cut_polygons

MAX_FAULTS = 10
_NAMING = frozenset({"usemtl", "o", "g"})
_PASSED_OVER = frozenset({"vt", "vn", "vp", "s", "l", "p", "mg"}) | frozenset(
    {"bevel", "c_interp", "d_interp", "lod", "shadow_obj", "trace_obj", "usemap", "maplib", "mtllib"}  # codespell:ignore lod
)


@dataclass(eq=False)
class _Reading:
    """State of reading: numbers in sequence, three per vertex; material and piece are those of each face."""

    path: Path
    vertices: "array[float]" = field(default_factory=lambda: array("d"))
    lines: "array[int]" = field(default_factory=lambda: array("q"))
    corners: "array[int]" = field(default_factory=lambda: array("q"))
    counts: "array[int]" = field(default_factory=lambda: array("q"))
    material: "array[int]" = field(default_factory=lambda: array("q"))
    names: dict[str, int] = field(default_factory=dict)
    current: int = -1
    group: int = 0
    group_name: str = ""
    piece: "array[int]" = field(default_factory=lambda: array("q"))
    pieces: dict[tuple[int, int], tuple[int, str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def read_obj(path: Path) -> MeshFile:
    """Read an OBJ file.

    Raises:
        AssetError: the file has faults; the message names up to ten with their lines.
    """
    reading = _Reading(path)
    for number, line in _lines(path, _text(path)):
        _read_line(reading, number, _words(line))
        if len(reading.faults) >= MAX_FAULTS:
            break
    if reading.faults:
        raise AssetError("\n".join(f"{path}: {fault}" for fault in reading.faults))
    if not reading.counts:
        raise AssetError(f"{path}: must have at least one face (f), got {len(reading.lines)} vertices and none")
    vertices, corners = np.array(reading.vertices, dtype=np.float64).reshape(-1, 3), np.array(reading.corners, dtype=np.int64)
    triangles, face = cut_polygons(vertices[corners], np.array(reading.counts, dtype=np.int64))
    part = MeshPart(
        vertices=vertices,
        triangles=corners[triangles],
        material=np.array(reading.material, dtype=np.int64)[face],
        names=tuple(reading.names),
        lines=np.array(reading.lines, dtype=np.int64),
        piece=np.array(reading.piece, dtype=np.int64)[face],
        pieces=tuple(name for _, name in reading.pieces.values()),
    )
    return MeshFile(parts=(part,))


def _lines(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines; a line that ends in a backslash continues in the next, and has the number of its last part."""
    number = size = 0
    parts: list[str] = []
    for number, line in enumerate(StringIO(text, newline=None), start=1):
        size += len(line)
        LINE_BYTES.enforce(size, f"{path}: line {number}", AssetError)
        bare = line.rstrip("\n")
        if bare.endswith("\\"):
            parts.append(bare[:-1])
            continue
        yield number, " ".join((*parts, bare))
        parts.clear()
        size = 0
    if parts:
        raise AssetError(f"{path}: line {number}: the file must not end in a continued line")


def _words(line: str) -> list[str]:
    """Words of a line without its comment; names may contain ``#`` (``Material #25``), and comments after them begin with a blank."""
    if "#" not in line:
        return line.split()
    return re.split(r"(?:^|\s)#(?:\s|$)" if line.split(maxsplit=1)[0] in _NAMING else "#", line, maxsplit=1)[0].split()


def _text(path: Path) -> str:
    data = read_bytes(path)
    if b"\0" in data:
        raise AssetError(f"{path}: must be an OBJ text file, got a zero byte at {data.index(0)}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")  # older exporters write names in the machine's own encoding


def _read_line(reading: _Reading, number: int, words: list[str]) -> None:
    if not words:
        return
    match words[0]:
        case "v":
            _read_vertex(reading, number, words[1:])
        case "f":
            _read_face(reading, number, words[1:])
        case "usemtl":
            name = " ".join(words[1:])
            reading.current = reading.names.setdefault(name, len(reading.names))
        case "o" | "g":
            reading.group, reading.group_name = reading.group + 1, " ".join(words[1:])
        case keyword if keyword not in _PASSED_OVER:
            reading.faults.append(f"line {number}: must begin with an OBJ keyword of polygons, got {keyword[:20]!r}")


def _read_vertex(reading: _Reading, number: int, words: list[str]) -> None:
    """Read three coordinates; a weight or a colour may follow."""
    try:
        x, y, z = (float(word) for word in words[:3])
    except ValueError:
        reading.faults.append(f"line {number}: a vertex must have three numbers, got {' '.join(words)[:60]!r}")
        x = y = z = 0.0
    if not (isfinite(x) and isfinite(y) and isfinite(z)):
        reading.faults.append(f"line {number}: a vertex must be finite, got ({x}, {y}, {z})")
    reading.vertices.extend((x, y, z))
    reading.lines.append(number)


def _read_face(reading: _Reading, number: int, words: list[str]) -> None:
    """Read a polygon; ``7``, ``7/1``, ``7//3``, ``7/1/3``; negative numbers count back."""
    count = len(reading.lines)
    is_small, fault = FACE_CORNERS.rule(len(words))
    if not is_small:
        reading.faults.append(f"line {number}: {fault}")
        return
    rows = []
    for word in words:
        try:
            vertex_number = int(word.split("/", 1)[0])
        except ValueError:  # also of a number of thousands of digits
            reading.faults.append(f"line {number}: a face must name vertices by number, got {word[:20]!r}")
            return
        row = vertex_number - 1 if vertex_number > 0 else count + vertex_number
        if vertex_number == 0 or not 0 <= row < count:
            reading.faults.append(f"line {number}: a face must name vertices 1 to {count} (those before it), got {vertex_number}")
            return
        rows.append(row)
    if len(rows) < 3:
        reading.faults.append(f"line {number}: a face must have at least three vertices, got {len(rows)}")
        return
    if reading.current < 0:
        reading.current = reading.names.setdefault("", len(reading.names))
    piece, _ = reading.pieces.setdefault((reading.group, reading.current), (len(reading.pieces), reading.group_name))
    reading.corners.extend(rows)
    reading.counts.append(len(rows))
    reading.piece.append(piece)
    reading.material.append(reading.current)
    SCENE_TRIANGLES.enforce(len(reading.corners) - 2 * len(reading.counts), f"{reading.path}: line {number}", AssetError)
