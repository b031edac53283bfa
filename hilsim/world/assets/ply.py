"""PLY files (Turk 1994), read whole: faces of any number of corners, also of several numbers in one file, and strips of triangles (``tristrips``)."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.errors import AssetError
from hilsim.limits import FACE_CORNERS, SCENE_TRIANGLES
from hilsim.world.assets.colours import coloured
from hilsim.world.assets.mesh_parts import MeshPart, is_file
from hilsim.world.scene.polygons import cut_polygons, strip_triangles

_MAX_HEADER_BYTES = 65536
_TYPES = {"char": "b", "uchar": "B", "short": "h", "ushort": "H", "int": "i", "uint": "I", "float": "f", "double": "d"} | {
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "float32": "f", "float64": "d", "int64": "q", "uint64": "Q"
}  # fmt: skip
"""Types by their letters in ``struct`` and, after ``<`` or ``>``, in NumPy."""
_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
_CORNERS, _COLOURS = ("vertex_indices", "vertex_index"), ("red", "green", "blue")
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
    """Values of a property in all rows, and the length of each row, which is 1 except in lists."""

    values: npt.NDArray[Any]
    lengths: npt.NDArray[np.int64]


_NONE = _Column(np.zeros(0, np.int64), np.zeros(0, np.int64))
_Columns = dict[str, _Column]


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
    points, faces = table.get("vertex", {}), table.get("face", {})
    if not set("xyz") <= set(points):
        raise AssetError(f"{path}: the vertices of a PLY file must have x, y and z, got {', '.join(points) or 'none'}")
    vertices = np.stack([points[axis].values.astype(np.float64) for axis in "xyz"], axis=-1)
    corners, counts = _corners(path, faces)
    if (counts < 3).any():
        raise AssetError(f"{path}: must have {len(counts)} faces by its own count, got {int((counts >= 3).sum())} of three corners or more")
    FACE_CORNERS.enforce(int(counts.max(initial=0)), str(path), AssetError)
    SCENE_TRIANGLES.enforce(int((counts - 2).sum()), str(path), AssetError)
    outside = np.flatnonzero((corners < 0) | (corners >= len(vertices)))
    if len(outside):
        face = int(np.searchsorted(np.cumsum(counts), outside[0], side="right"))
        raise AssetError(f"{path}: face {face} must name vertices 0 to {len(vertices) - 1}, got {corners[outside[0]]}")
    triangles, face_of = cut_polygons(vertices[corners], counts)
    rows, brightness = np.concatenate([corners[triangles], *_strips(_corners(path, table.get("tristrips", {})))]), None
    if with_colours:
        has_strips = len(rows) > len(triangles)  # which have the colours of their vertices
        painted = {"vertex": points} | ({} if has_strips else {"face": faces})
        picture = None if has_strips else _picture(path, image, table, corners, triangles)
        vertices, rows, brightness = coloured(*_painted(vertices, rows, _colours(painted, face_of), picture))
    return (MeshPart(vertices=vertices, triangles=rows, brightness=brightness, material=np.zeros(len(rows), dtype=np.int64), names=("",)),)


def _corners(path: Path, columns: _Columns) -> _Column:
    found = next((columns[name] for name in _CORNERS if name in columns), _NONE)
    if columns and found is _NONE:
        raise AssetError(f"{path}: faces and strips must have the list vertex_indices, got {', '.join(columns)}")
    return _Column(found.values.astype(np.int64), found.lengths)


def _strips(column: _Column) -> Iterator[npt.NDArray[np.int64]]:
    """Triangles of each strip; -1 begins a new one."""
    for strip in np.split(column.values, np.union1d(np.flatnonzero(column.values == -1), np.cumsum(column.lengths))):
        yield strip_triangles(strip[strip != -1])


def _colours(table: dict[str, _Columns], face_of: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
    """Colours of vertices and of triangles."""
    return {
        f"{name}_colors": np.stack([columns[colour].values for colour in _COLOURS], axis=-1)[face_of if name == "face" else slice(None)]
        for name, columns in table.items()
        if set(_COLOURS) <= set(columns)
    }


def _picture(
    path: Path, image: str, table: dict[str, _Columns], corners: npt.NDArray[np.int64], triangles: npt.NDArray[np.int64]
) -> tuple[Path, npt.NDArray[Any]] | None:
    """File of the image laid over the mesh, and the places ``float[m, 3, 2]`` of the triangles' corners in it."""
    points, own = table["vertex"], table["face"].get("texcoord", _NONE).values
    if not image or not is_file(path.parent / image):
        return None
    if len(own) == 2 * len(corners):
        return path.parent / image, own.reshape(-1, 2)[triangles]
    pair = next((pair for pair in _PLACES_IN_IMAGE if set(pair) <= set(points)), None)
    return None if pair is None else (path.parent / image, np.stack([points[name].values for name in pair], axis=-1)[corners[triangles]])


def _painted(
    vertices: npt.NDArray[np.float64],
    rows: npt.NDArray[np.int64],
    colours: dict[str, npt.NDArray[Any]],
    picture: tuple[Path, npt.NDArray[Any]] | None,
) -> tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Mesh of trimesh with colours or an image, its vertices and its triangles."""
    import trimesh  # noqa: PLC0415 - it costs half a second and 40 MB, which a rig without colours does not need
    from PIL import Image  # noqa: PLC0415 - as above

    if picture is not None:
        vertices, rows = vertices[rows].reshape(-1, 3), np.arange(rows.size, dtype=np.int64).reshape(-1, 3)
        colours = {"visual": trimesh.visual.TextureVisuals(uv=picture[1].reshape(-1, 2), image=Image.open(picture[0]))}
    return trimesh.Trimesh(vertices, rows, process=False, **colours), vertices, rows


def _table(path: Path, data: bytes) -> tuple[dict[str, _Columns], str]:
    """Columns of each element, and the name of the image laid over the mesh; empty without one."""
    end = data.find(b"end_header", 0, _MAX_HEADER_BYTES)
    if not data.startswith(b"ply") or end < 0:
        raise AssetError(f"{path}: must be a PLY file with a header, got {data[:12]!r} …")
    lines = data[:end].decode("latin-1").splitlines()
    elements, order = _header(path, [line.split() for line in lines])
    image = next((line.split(maxsplit=2)[2].strip() for line in lines if line.lower().startswith("comment texturefile ")), "")
    body, is_text = data[end + len(b"end_header") :], order == ""
    body = body.removeprefix(b"\r\n" if b"\r\n" in data[:end] else b"\n" if b"\n" in data[:end] else b"\r")
    if is_text:  # is read as if all its numbers were doubles in binary
        body, order = np.array(body.split(), dtype="<f8").tobytes(), "<"
    table, at = {}, 0
    for element in elements:
        kinds = [(("d" if each.length_kind else ""), "d") if is_text else (each.length_kind, each.kind) for each in element.properties]
        columns, at = _read(path, element, kinds, body, at, order)
        exact = [
            each.kind if is_text and each.kind not in "fd" else values.dtype for each, (values, _) in zip(element.properties, columns, strict=True)
        ]
        pairs = zip(element.properties, columns, exact, strict=True)
        table[element.name] = {each.name: _Column(values.astype(kind, copy=False), lengths) for each, (values, lengths), kind in pairs}
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
        case ["property", "list", length_kind, kind, name]:
            elements[-1].properties.append(_Property(name, _TYPES[kind], _TYPES[length_kind]))
        case ["property", kind, name]:
            elements[-1].properties.append(_Property(name, _TYPES[kind]))
        case ["element" | "property", *_]:
            raise ValueError


def _read(path: Path, element: _Element, kinds: list[tuple[str, str]], data: bytes, at: int, order: str) -> tuple[list[_Column], int]:
    """Columns of an element whose rows begin at ``at``, with the types of their lengths and values, and the end of the rows."""
    values: list[list[bytes]] = [[] for _ in kinds]
    lengths: list[list[int]] = [[] for _ in kinds]
    reads = [(struct.Struct(order + length_kind), struct.calcsize(order + kind)) for length_kind, kind in kinds]
    start = at
    for row in range(element.rows):
        for column, (counted, size) in enumerate(reads):
            (length,) = counted.unpack_from(data, at) or (1,) if at + counted.size <= len(data) else (-1,)
            at += counted.size + int(length) * size
            if length < 0 or at > len(data):
                raise AssetError(f"{path}: must have {element.rows} rows of {element.name}, got {row} whole ones (cut short?)")
            values[column].append(data[at - int(length) * size : at])
            lengths[column].append(int(length))
        if row == 0 and (alike := _alike(element.rows, kinds, [found[0] for found in lengths], data[start:], order)):
            return alike, start + (at - start) * element.rows
    columns = zip(kinds, values, lengths, strict=True)
    return [_Column(np.frombuffer(b"".join(held), order + kind), np.array(found, dtype=np.int64)) for (_, kind), held, found in columns], at


def _alike(rows: int, kinds: list[tuple[str, str]], lengths: list[int], data: bytes, order: str) -> list[_Column]:
    """Columns of an element whose rows all have the lengths of the first, at once; empty if some differ, or are missing."""
    layout: list[Any] = []
    for column, ((length_kind, kind), length) in enumerate(zip(kinds, lengths, strict=True)):
        layout += [(f"length{column}", order + length_kind)] if length_kind else []
        layout.append((f"values{column}", order + kind, (length,)))
    whole = np.dtype(layout)
    if whole.itemsize * rows > len(data):
        return []
    found = np.frombuffer(data, whole, rows)
    if any((found[f"length{column}"] != lengths[column]).any() for column, (length_kind, _) in enumerate(kinds) if length_kind):
        return []
    return [_Column(found[f"values{column}"].reshape(-1), np.full(rows, length, dtype=np.int64)) for column, length in enumerate(lengths)]
