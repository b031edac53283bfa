"""PLY files (Turk 1994), read whole: faces of any number of corners, also of several numbers in one file, and strips of triangles (``tristrips``)."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.assets.colours import coloured
from hilsim.assets.mesh_parts import MeshPart, is_file
from hilsim.assets.polygons import cut_polygons, strip_triangles
from hilsim.errors import AssetError
from hilsim.limits import FACE_CORNERS, SCENE_TRIANGLES

_MOST_HEADER_BYTES = 65536
_TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "float": "f4", "double": "f8"} | {
    f"{word}{8 * size}": f"{word[0]}{size}" for word in ("int", "uint", "float") for size in (1, 2, 4, 8) if (word, size) != ("float", 1)
}
_LENGTHS = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I"}
"""Types of the lengths of lists, as in ``struct``."""
_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
_CORNERS = ("vertex_indices", "vertex_index")
_COLOURS = ("red", "green", "blue")
_PLACES_IN_IMAGE = (("texture_u", "texture_v"), ("u", "v"), ("s", "t"))


class _Property(NamedTuple):
    """Property of an element; a list has a type of its lengths."""

    name: str
    kind: str
    length_kind: str = ""


class _Element(NamedTuple):
    name: str
    rows: int
    properties: list[_Property]


class _Column(NamedTuple):
    """Values of a property: those of all rows, and the length of each row; 1 except in lists."""

    values: npt.NDArray[Any]
    lengths: npt.NDArray[np.int64]


_Table = dict[str, dict[str, _Column]]


def read_ply(path: Path, data: bytes, *, with_colours: bool = False) -> tuple[MeshPart, ...]:
    """Read the triangles of a PLY file.

    Args:
        path: Path of the file, for messages and for its image.
        data: Bytes of the file.
        with_colours: Whether to read its colours, through trimesh.

    Raises:
        AssetError: the file cannot be used; the message names it and the reason.
    """
    table, image = _table(path, data)
    points, faces, strips = (table.get(name, {}) for name in ("vertex", "face", "tristrips"))
    if not all(axis in points for axis in "xyz"):
        raise AssetError(f"{path}: the vertices of a PLY file must have x, y and z, got {', '.join(points) or 'none'}")
    vertices = np.stack([points[axis].values.astype(np.float64) for axis in "xyz"], axis=-1)
    corners, counts = _lists(path, faces, "face")
    _check_faces(path, corners, counts, len(vertices))
    triangles, face = cut_polygons(vertices[corners], counts)
    rows = np.concatenate([corners[triangles], *_of_strips(path, strips)])
    if not len(rows):
        raise AssetError(f"{path}: must have at least one triangle, got a PLY of {len(vertices)} points without faces")
    brightness = None
    if with_colours:
        vertices, rows, brightness = coloured(*_geometry(path, table, image, vertices, rows, corners, triangles, face))
    return (MeshPart(vertices=vertices, triangles=rows, brightness=brightness, material=np.zeros(len(rows), dtype=np.int64), names=("",)),)


def _lists(path: Path, columns: dict[str, _Column], element: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    if not columns:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    found = next((columns[name] for name in _CORNERS if name in columns), None)
    if found is None:
        raise AssetError(f"{path}: {element} must have the list vertex_indices, got {', '.join(columns)}")
    return found.values.astype(np.int64), found.lengths


def _check_faces(path: Path, corners: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], vertices: int) -> None:
    if (counts < 3).any():
        raise AssetError(f"{path}: must have {len(counts)} faces by its own count, got {int((counts >= 3).sum())} of three corners or more")
    if len(counts):
        FACE_CORNERS.enforce(int(counts.max()), str(path), AssetError)
        SCENE_TRIANGLES.enforce(int((counts - 2).sum()), str(path), AssetError)
    outside = np.flatnonzero((corners < 0) | (corners >= vertices))
    if len(outside):
        row = int(np.searchsorted(np.cumsum(counts), outside[0], side="right"))
        raise AssetError(f"{path}: face {row} must name vertices 0 to {vertices - 1}, got {corners[outside[0]]}")


def _of_strips(path: Path, columns: dict[str, _Column]) -> Iterator[npt.NDArray[np.int64]]:
    """Triangles of each strip; -1 begins a new one."""
    corners, counts = _lists(path, columns, "tristrips")
    SCENE_TRIANGLES.enforce(len(corners), str(path), AssetError)
    ends = np.union1d(np.flatnonzero(corners == -1), np.cumsum(counts))
    for strip in np.split(corners, ends):
        held = strip[strip != -1]
        if len(held) >= 3:
            yield strip_triangles(held)


def _geometry(
    path: Path,
    table: _Table,
    image: str,
    vertices: npt.NDArray[np.float64],
    rows: npt.NDArray[np.int64],
    corners: npt.NDArray[np.int64],
    triangles: npt.NDArray[np.int64],
    face: npt.NDArray[np.int64],
) -> tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Mesh of trimesh with the file's colours or image, its vertices and its triangles."""
    import trimesh  # noqa: PLC0415 - it costs half a second and 40 MB, which a rig without colours does not need
    from PIL import Image  # noqa: PLC0415 - as above

    points, faces = table["vertex"], table.get("face", {})
    places = next((np.stack([points[name].values for name in pair], axis=-1)[rows] for pair in _PLACES_IN_IMAGE if set(pair) <= set(points)), None)
    if "texcoord" in faces and len(faces["texcoord"].values) == 2 * len(corners) and len(rows) == len(triangles):
        places = faces["texcoord"].values.reshape(-1, 2)[triangles]
    if image and places is not None and is_file(path.parent / image):
        visual = trimesh.visual.TextureVisuals(uv=places.reshape(-1, 2), image=Image.open(path.parent / image))
        apart = np.arange(rows.size, dtype=np.int64).reshape(-1, 3)
        return trimesh.Trimesh(vertices[rows].reshape(-1, 3), apart, visual=visual, process=False), vertices[rows].reshape(-1, 3), apart
    colours = {
        f"{name}_colors": np.stack([columns[colour].values for colour in _COLOURS], axis=-1)[chosen]
        for name, columns, chosen in (("vertex", points, slice(None)), ("face", faces, face))
        if set(_COLOURS) <= set(columns) and len(rows) == len(triangles)
    }
    return trimesh.Trimesh(vertices, rows, process=False, **colours), vertices, rows


def _table(path: Path, data: bytes) -> tuple[_Table, str]:
    """Columns of each element, and the name of the image laid over the mesh; empty without one."""
    end = data.find(b"end_header", 0, _MOST_HEADER_BYTES)
    if not data.startswith(b"ply") or end < 0:
        raise AssetError(f"{path}: must be a PLY file with a header, got {data[:12]!r} …")
    lines = data[:end].decode("latin-1").splitlines()
    elements, order = _header(path, [line.split() for line in lines])
    image = next((line.split(maxsplit=2)[2].strip() for line in lines if line.lower().startswith("comment texturefile ")), "")
    body = data[end + len(b"end_header") :].removeprefix(b"\r" if b"\r\n" in data[:end] or order == "" else b"").removeprefix(b"\n")
    table, at = {}, 0
    if order == "":
        rows = [words for line in body.splitlines() if (words := line.split())]
        if len(rows) < (total := sum(element.rows for element in elements)):
            raise AssetError(f"{path}: must have {total} lines after its header, got {len(rows)} (cut short?)")
        for element in elements:
            table[element.name] = _ascii(path, element, rows[at : at + element.rows])
            at += element.rows
        return table, image
    for element in elements:
        table[element.name], at = _binary(path, element, body, at, order)
    if at != len(body):
        raise AssetError(f"{path}: must end after its elements, got {len(body) - at} more bytes")
    return table, image


def _header(path: Path, lines: list[list[str]]) -> tuple[list[_Element], str]:
    """Elements of the header, and the byte order; empty for text."""
    elements: list[_Element] = []
    order = None
    for words in lines:
        try:
            order = _ORDERS[words[1]] if words[:1] == ["format"] else order
            _read_line(elements, words)
        except (LookupError, ValueError):
            raise AssetError(
                f"{path}: each element of a PLY header must have a name and a count, each property a type and a name, got {' '.join(words)[:60]!r}"
            ) from None
    if order is None or any(element.rows < 0 for element in elements):
        raise AssetError(f"{path}: a PLY header must have a format and counts of at least 0")
    if not any(element.name in {"face", "tristrips"} and element.rows for element in elements):
        points = sum(element.rows for element in elements if element.name == "vertex")
        raise AssetError(f"{path}: must have at least one triangle, got a PLY of {points} points without faces")
    return [element for element in elements if element.properties], order


def _read_line(elements: list[_Element], words: list[str]) -> None:
    match words:
        case ["element", name, rows]:
            elements.append(_Element(name, int(rows), []))
        case ["property", "list", length_kind, kind, name] if _TYPES[length_kind] in _LENGTHS:
            elements[-1].properties.append(_Property(name, _TYPES[kind], _TYPES[length_kind]))
        case ["property", kind, name]:
            elements[-1].properties.append(_Property(name, _TYPES[kind]))
        case ["element" | "property", *_]:
            raise ValueError


def _ascii(path: Path, element: _Element, lines: list[list[bytes]]) -> dict[str, _Column]:
    """Columns of an element in text; float is read as double, for its digits."""
    values: list[list[bytes]] = [[] for _ in element.properties]
    lengths: list[list[int]] = [[] for _ in element.properties]
    for words in lines:
        start = 0
        for column, (_, _, length_kind) in enumerate(element.properties):
            length = int(words[start]) if length_kind and start < len(words) else 1
            start += 1 if length_kind else 0
            values[column] += words[start : start + length]
            lengths[column].append(length)
            start += length
            if length < 0 or start > len(words):
                raise AssetError(f"{path}: a line of {element.name} must have {max(start, 1)} numbers, got {len(words)}")
    kinds = [kind.replace("f4", "f8") for _, kind, _ in element.properties]
    return {
        name: _Column(np.array(values[column], dtype="f8").astype(kinds[column]), np.array(lengths[column], dtype=np.int64))
        for column, (name, _, _) in enumerate(element.properties)
    }


def _binary(path: Path, element: _Element, data: bytes, at: int, order: str) -> tuple[dict[str, _Column], int]:
    """Columns of an element whose rows begin at ``at``, and the end of its rows."""
    values: list[list[bytes]] = [[] for _ in element.properties]
    lengths: list[list[int]] = [[] for _ in element.properties]
    reads = [
        (struct.Struct(order + _LENGTHS[each.length_kind]) if each.length_kind else None, np.dtype(each.kind).itemsize) for each in element.properties
    ]
    left = element.rows
    while left:
        start = at
        for column, (counted, size) in enumerate(reads):
            length = 1
            if counted is not None and at + counted.size <= len(data):
                (length,) = counted.unpack_from(data, at)
                at += counted.size
            values[column].append(data[at : at + length * size])
            lengths[column].append(length)
            at += length * size
            if length < 0 or at > len(data):
                raise AssetError(f"{path}: must have {element.rows} rows of {element.name}, got {element.rows - left} whole ones (cut short?)")
        left -= 1
        if left == element.rows - 1 and (alike := _alike(element, data[start:], [row[0] for row in lengths], order)) is not None:
            return alike, start + (at - start) * element.rows
    return {
        name: _Column(np.frombuffer(b"".join(values[column]), order + kind), np.array(lengths[column], dtype=np.int64))
        for column, (name, kind, _) in enumerate(element.properties)
    }, at


def _alike(element: _Element, data: bytes, lengths: list[int], order: str) -> dict[str, _Column] | None:
    """Columns of an element whose rows all have the lengths of the first, at once; None if some differ, or are missing."""
    layout: list[Any] = []
    for column, (each, length) in enumerate(zip(element.properties, lengths, strict=True)):
        layout += [(f"length{column}", order + each.length_kind)] if each.length_kind else []
        layout.append((f"values{column}", order + each.kind, (length,)))
    kind = np.dtype(layout)
    if kind.itemsize * element.rows > len(data):
        return None
    rows = np.frombuffer(data, kind, element.rows)
    if any((rows[f"length{column}"] != lengths[column]).any() for column, each in enumerate(element.properties) if each.length_kind):
        return None
    return {
        each.name: _Column(rows[f"values{column}"].reshape(-1), np.full(element.rows, lengths[column], dtype=np.int64))
        for column, each in enumerate(element.properties)
    }
