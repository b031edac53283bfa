"""Check that a mesh file is complete, before trimesh reads it, because trimesh ignores missing parts.

Formats: STL (binary: 80 bytes, a count, 50 bytes a triangle), PLY 1.0 (Turk 1994), glTF 2.0 with the GLB container (Khronos, chapter 4).
"""

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hilsim.assets.mesh_parts import is_file
from hilsim.assets.nesting import nesting
from hilsim.errors import AssetError, library_reads
from hilsim.limits import JSON_NESTING, JSON_VALUES, NODE_NESTING, SCENE_TRIANGLES

_GLB_HEADER = struct.Struct("<4sII")
_GLB_CHUNK = struct.Struct("<I4s")
_STL_HEADER_SIZE = 84
_STL_TRIANGLE_SIZE = 50
_DAE_HEAD = 4096
_DAE_UNIT = re.compile(rb"""<unit\b[^>]*\bmeter\s*=\s*["']([^"']*)["']""")
_ASCII_STL = re.IGNORECASE | re.MULTILINE
_PLY_MOST_HEADER_BYTES = 65536
_TRIANGLE_MODES = (4, 5, 6)
_EXTENSIONS_OF_LOOKS = ("KHR_materials_", "KHR_texture_", "KHR_lights_", "EXT_texture_", "KHR_xmp", "MSFT_texture_")
"""Extensions that change only the appearance."""


def check_stl(path: Path, data: bytes) -> int:
    """Number of triangles that the file declares."""
    if len(data) >= _STL_HEADER_SIZE:
        (count,) = struct.unpack_from("<I", data, 80)
        expected = _STL_HEADER_SIZE + _STL_TRIANGLE_SIZE * count
        if len(data) == expected:
            if count == 0:
                raise AssetError(f"{path}: must have at least one triangle, got 0")
            return int(count)
    if not data.lstrip()[:5].lower() == b"solid" or b"\0" in data:
        raise AssetError(f"{path}: must be an STL file of whole triangles, got {len(data)} bytes that are neither binary nor ASCII STL (cut short?)")
    opened, closed, corners, ended = (
        len(re.findall(rb"^\s*" + word + rb"\b", data, _ASCII_STL)) for word in (b"facet", b"endfacet", b"vertex", b"endsolid")
    )
    if opened == 0:
        raise AssetError(f"{path}: must have at least one triangle, got an ASCII STL with 0")
    if opened != closed or corners != 3 * opened or ended == 0:
        raise AssetError(f"{path}: must be whole, got an ASCII STL with {opened} facet, {corners} vertex and {closed} endfacet (cut short?)")
    return opened


def check_ply(path: Path, data: bytes) -> int:
    """Number of faces that the header declares."""
    end = data.find(b"end_header", 0, _PLY_MOST_HEADER_BYTES)
    if not data.startswith(b"ply") or end < 0:
        raise AssetError(f"{path}: must be a PLY file with a header, got {data[:12]!r} …")
    header = [line.split() for line in data[:end].decode("latin-1").splitlines()]
    try:
        counts = {words[1]: int(words[2]) for words in header if words[:1] == ["element"]}
    except (IndexError, ValueError):
        raise AssetError(f"{path}: each element of a PLY header must have a name and a count") from None
    faces = counts.get("face", 0)
    if faces <= 0:
        raise AssetError(f"{path}: must have at least one triangle, got a PLY of {counts.get('vertex', 0)} points without faces")
    if ["format", "ascii", "1.0"] in header:
        lines = sum(1 for line in data[end:].splitlines()[1:] if line.strip())
        if lines < sum(counts.values()):
            raise AssetError(f"{path}: must have {sum(counts.values())} lines after its header, got {lines} (cut short?)")
    return faces


def check_dae(path: Path, data: bytes) -> float:
    """Metres per unit of the file."""
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise AssetError(f"{path}: must be a COLLADA file without a document type, got one that defines entities")
    if b"<COLLADA" not in data[:_DAE_HEAD] or not data.rstrip().endswith(b"</COLLADA>"):
        raise AssetError(f"{path}: must be a whole COLLADA file, got {len(data)} bytes that do not begin and end as one (cut short?)")
    found = _DAE_UNIT.search(data)
    if found is None:
        return 1.0
    try:
        metres = float(found[1])
    except ValueError:
        metres = 0.0
    if not 1e-6 <= metres <= 1e6:
        raise AssetError(f"{path}: <unit meter> must be 1e-6 to 1e6, got {found[1].decode(errors='replace')}")
    return metres


def check_gltf(path: Path, data: bytes) -> list[str]:
    """Reject files that trimesh would read wrongly or in part; returns notes on ignored parts."""
    document = _gltf_document(path, data)
    with library_reads(f"{path}: must hold a glTF document, got one of another shape", AssetError):
        faults, notes = list(_gltf_faults(path, document)), list(_gltf_notes(path, document))
    if faults:
        raise AssetError("\n".join(f"{path}: {fault}" for fault in faults))
    return notes


def _gltf_faults(path: Path, document: dict[str, Any]) -> Iterator[str]:
    for extension in document.get("extensionsRequired", []):
        if not extension.startswith(_EXTENSIONS_OF_LOOKS):
            yield f"must not need the glTF extension {extension}: export it without compression or quantization"
    if any("sparse" in accessor for accessor in document.get("accessors", [])):
        yield "must not have sparse accessors"
    bare = [number for number, accessor in enumerate(document.get("accessors", [])) if "bufferView" not in accessor]
    if bare:
        yield f"accessors must have data (bufferView), got none for number {bare[0]}"
    fits, fault = SCENE_TRIANGLES.rule(_gltf_triangles(document))
    if not fits:
        yield fault
    fits, fault = NODE_NESTING.rule(_node_nesting(document.get("nodes", [])))
    if not fits:
        yield fault
    for buffer in document.get("buffers", []):
        if "uri" in buffer and _is_missing(path, buffer["uri"]):
            yield f"buffer {buffer['uri']!r} must be beside it, got no such file"


def _gltf_triangles(document: dict[str, Any]) -> int:
    """Number of triangles of all meshes, each multiplied by its occurrences in the scene (at least one), counted as triangle lists."""
    counts = [accessor["count"] for accessor in document.get("accessors", [])]
    uses: dict[int, int] = {}
    for node in document.get("nodes", []):
        uses[node.get("mesh")] = uses.get(node.get("mesh"), 0) + 1
    total = 0
    for number, mesh in enumerate(document.get("meshes", [])):
        corners = sum(
            counts[primitive["indices"] if "indices" in primitive else primitive["attributes"]["POSITION"]]
            for primitive in mesh.get("primitives", [])
        )
        total += corners * max(uses.get(number, 0), 1)
    return int(total // 3)


def _node_nesting(nodes: list[dict[str, Any]]) -> int:
    """Depth of the tree of nodes; more than the number of nodes if it has a cycle."""
    level, levels = list({child for node in nodes for child in node.get("children", [])}), 1
    while level and levels <= NODE_NESTING.bound:
        level = list({child for number in level for child in nodes[number].get("children", [])})
        levels += 1
    return levels


def _gltf_document(path: Path, data: bytes) -> dict[str, Any]:
    text = _glb_text(path, data) if path.suffix.lower() == ".glb" else data
    JSON_VALUES.enforce(text.count(b",") + text.count(b":"), str(path), AssetError)
    JSON_NESTING.enforce(nesting(text), str(path), AssetError)
    with library_reads(f"{path}: must hold a glTF document", AssetError):
        document = json.loads(text)
        version = document["asset"]["version"]
    if not str(version).startswith("2."):
        raise AssetError(f"{path}: glTF version must be 2, got {version}")
    return dict(document)


def _glb_text(path: Path, data: bytes) -> bytes:
    if len(data) < _GLB_HEADER.size + _GLB_CHUNK.size or data[:4] != b"glTF":
        raise AssetError(f"{path}: must begin with glTF, got {data[:4]!r}")
    _, _, length = _GLB_HEADER.unpack_from(data)
    if length != len(data):
        raise AssetError(f"{path}: must be {length} bytes long by its header, got {len(data)} (cut short?)")
    size, kind = _GLB_CHUNK.unpack_from(data, _GLB_HEADER.size)
    start = _GLB_HEADER.size + _GLB_CHUNK.size
    if kind != b"JSON" or start + size > len(data):
        raise AssetError(f"{path}: must have a JSON chunk first, got {kind!r} of {size} bytes")
    return data[start : start + size]


def _gltf_notes(path: Path, document: dict[str, Any]) -> list[str]:
    notes = []
    primitives = [primitive for mesh in document.get("meshes", []) for primitive in mesh.get("primitives", [])]
    left_out = sum(primitive.get("mode", 4) not in _TRIANGLE_MODES for primitive in primitives)
    if left_out:
        notes.append(f"{path}: {left_out} of {len(primitives)} parts are lines or points and are left out")
    if document.get("animations"):
        notes.append(f"{path}: animations are left out; give the object a motion in the rig")
    if document.get("skins") or any("targets" in primitive for primitive in primitives):
        notes.append(f"{path}: skins and morph targets are ignored; the mesh has its modelled shape")
    missing = [image["uri"] for image in document.get("images", []) if _is_missing(path, image.get("uri", ""))]
    if missing:
        notes.append(f"{path}: textures are missing: no colours are read from them: {', '.join(missing)}")
    return notes


def _is_missing(path: Path, uri: str) -> bool:
    return bool(uri) and not uri.startswith("data:") and not is_file(path.parent / unquote(uri))
