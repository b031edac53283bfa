"""STL files, binary (80 bytes, a count, 50 bytes a triangle) and ASCII, read whole."""

import re
import struct
from codecs import BOM_UTF8
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilsim.errors import AssetError
from hilsim.limits import SCENE_TRIANGLES
from hilsim.world.assets.mesh_parts import MeshFile, MeshPart

_HEADER_SIZE = 84
_TRIANGLE_DTYPE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_FLAGS = re.IGNORECASE | re.MULTILINE
_VERTEX = re.compile(rb"^\s*vertex\s+(\S+)\s+(\S+)\s+(\S+)", _FLAGS)


def read_stl(path: Path, data: bytes) -> MeshFile:
    """Read an STL file.

    Raises:
        AssetError: the file cannot be used; the message names it and the reason.
    """
    (count,) = struct.unpack_from("<I", data, 80) if len(data) >= _HEADER_SIZE else (0,)
    end = _HEADER_SIZE + _TRIANGLE_DTYPE.itemsize * count
    behind = len(data) - end
    text = data.removeprefix(BOM_UTF8)
    if behind and text.lstrip()[:5].lower() == b"solid" and b"\0" not in text:
        return MeshFile(parts=(_part(_ascii(path, text)),))
    if behind < 0 or (behind and behind % _TRIANGLE_DTYPE.itemsize == 0):
        got = f"{len(data)} bytes that are neither ASCII STL nor {count} triangles by its own count ({end} bytes)"
        raise AssetError(f"{path}: must be an STL file of whole triangles, got {got}{' (cut short?)' if behind < 0 else ''}")
    if count == 0:
        raise AssetError(f"{path}: must have at least one triangle, got 0")
    SCENE_TRIANGLES.enforce(count, str(path), AssetError)
    notes = (f"{path}: {behind} bytes behind its {count} triangles are ignored",) if behind else ()
    return MeshFile(parts=(_part(np.frombuffer(data, _TRIANGLE_DTYPE, count, _HEADER_SIZE)["corners"]),), notes=notes)


def _ascii(path: Path, data: bytes) -> npt.NDArray[np.float64]:
    opened, closed, corners, ended = (
        len(re.findall(rb"^\s*" + word + rb"\b", data, _FLAGS)) for word in (b"facet", b"endfacet", b"vertex", b"endsolid")
    )
    if opened == 0:
        raise AssetError(f"{path}: must have at least one triangle, got an ASCII STL with 0")
    if opened != closed or corners != 3 * opened or ended == 0:
        raise AssetError(f"{path}: must be whole, got an ASCII STL with {opened} facet, {corners} vertex and {closed} endfacet (cut short?)")
    found = _VERTEX.findall(data)
    try:
        vertices = np.array(found, dtype=np.float64)
    except ValueError as error:
        raise AssetError(f"{path}: a vertex must have three numbers: {error}") from None
    if len(found) != corners:
        raise AssetError(f"{path}: each of the {corners} vertices must have three numbers in its line, got {len(found)} with three")
    return vertices


def _part(corners: npt.NDArray[np.floating]) -> MeshPart:
    vertices = corners.astype(np.float64).reshape(-1, 3)
    rows = np.arange(len(vertices), dtype=np.int64).reshape(-1, 3)
    return MeshPart(vertices=vertices, triangles=rows, material=np.zeros(len(rows), dtype=np.int64), names=("",))
