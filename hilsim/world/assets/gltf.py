"""glTF 2.0 and its GLB container (Khronos, chapter 4), checked and prepared here, then read through trimesh, which ignores what it does not know.

What trimesh reads otherwise than the standard is written anew before: strips and fans as lists of triangles, a file without a scene as one of all its nodes.
Its triangles are counted by the file's own declaration, and compared with those that were read.
"""

import json
import logging
import struct
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

import numpy as np
import numpy.typing as npt

from hilsim.errors import AssetError, library_reads
from hilsim.limits import JSON_NESTING, JSON_VALUES, NODE_NESTING, SCENE_TRIANGLES
from hilsim.world.assets.colours import coloured
from hilsim.world.assets.mesh_parts import MeshFile, MeshPart, is_file, read_bytes
from hilsim.world.assets.nesting import nesting
from hilsim.world.scene.polygons import fan_triangles, strip_triangles

_GLB_HEADER = struct.Struct("<4sII")
_GLB_CHUNK = struct.Struct("<I4s")
_LIST = 4
_CHAINS = {5: strip_triangles, 6: fan_triangles}
_INDEX_TYPES = {5121: "<u1", 5123: "<u2", 5125: "<u4"}
_EXTENSIONS_OF_LOOKS = ("KHR_materials_", "KHR_texture_", "KHR_lights_", "EXT_texture_", "KHR_xmp", "MSFT_texture_")
"""Extensions that change only the appearance."""
_COMPRESSIONS = ("KHR_draco_", "EXT_meshopt_")
"""Extensions beside whose data a file that does not require them has the same data as they are."""


class _Files(dict[str, bytes]):
    """Bytes of the files that a document names, by their URIs, which are percent-encoded."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, uri: str) -> bytes:
        self[uri] = read_bytes(self._folder / unquote(uri))
        return self[uri]


def read_gltf(path: Path, data: bytes, *, with_colours: bool = False) -> MeshFile:
    """Read a glTF or GLB file.

    Raises:
        AssetError: the file cannot be used, or trimesh reads only a part of it; the message names it and the reason.
        Exception: any exception of trimesh.
    """
    document, binary = _gltf_document(path, data)
    files = _Files(path.parent)
    with library_reads(f"{path}: must hold a glTF document, got one of another shape", AssetError):
        faults = list(_gltf_faults(path, document)) or list(_resolved(document, files, binary))
        notes = tuple(_gltf_notes(path, document))
        if faults:
            raise AssetError("\n".join(f"{path}: {fault}" for fault in faults))
        _rewrite(document, files)
        declared, uses = _triangles(document), _placements(document)[1]
    expected = sum(declared[mesh] * times for mesh, times in uses.items())
    if expected == 0:
        raise AssetError(f"{path}: must have at least one triangle, got 0 in its scene, {sum(declared)} in its meshes")
    scene, parts = _scene(document, files), []
    count = 0
    for matrix, name in (scene.graph[node] for node in scene.graph.nodes_geometry):
        geometry = scene.geometry[name]
        if len(getattr(geometry, "faces", ())):  # no lines, no points
            count += len(geometry.faces)
            parts.append(_part(geometry, np.asarray(matrix, dtype=np.float64), with_colours=with_colours))
    if count != expected:
        raise AssetError(f"{path}: must have {expected} triangles by its own count, got {count} readable ones")
    return MeshFile(parts=tuple(parts), notes=notes)


def _scene(document: dict[str, Any], files: _Files) -> Any:
    import trimesh  # noqa: PLC0415 - it costs half a second and 40 MB, which a rig without such files does not need

    logging.getLogger("trimesh").setLevel(logging.CRITICAL)
    return trimesh.load_scene(BytesIO(json.dumps(document).encode()), file_type="gltf", resolver=files, process=False)


def _part(geometry: Any, matrix: npt.NDArray[np.float64], *, with_colours: bool) -> MeshPart:
    """One placed geometry of a trimesh scene."""
    vertices: npt.NDArray[np.float64] = np.asarray(geometry.vertices, dtype=np.float64) @ matrix[:3, :3].T + matrix[:3, 3]
    rows: npt.NDArray[np.int64] = np.asarray(geometry.faces, dtype=np.int64)
    name, brightness = getattr(getattr(getattr(geometry, "visual", None), "material", None), "name", None), None
    if with_colours:
        vertices, rows, brightness = coloured(geometry, vertices, rows)
    return MeshPart(vertices=vertices, triangles=rows, brightness=brightness, material=np.zeros(len(rows), dtype=np.int64), names=(str(name or ""),))


def _resolved(document: dict[str, Any], files: _Files, binary: bytes) -> Iterator[str]:
    """Read all buffers, which get the names ``buffer 0`` and so on; yields a fault for each that is shorter than declared."""
    for number, buffer in enumerate(document.get("buffers", [])):
        name, uri = f"buffer {number}", buffer.get("uri", "")
        head, _, text = uri.partition(",")
        if not uri:
            files[name] = binary
        elif not head.startswith("data:"):
            files[name] = files[uri]
        else:
            files[name] = b64decode(text) if head.endswith(";base64") else unquote_to_bytes(text)
        if len(files[name]) < buffer["byteLength"]:
            yield f"{name} must have {buffer['byteLength']} bytes, got {len(files[name])} (cut short?)"
        buffer["uri"] = name


def _rewrite(document: dict[str, Any], files: _Files) -> None:
    """Write a document anew, as trimesh reads it: strips and fans as lists, a scene, and no cameras."""
    accessors, views, buffers = (document.setdefault(key, []) for key in ("accessors", "bufferViews", "buffers"))
    for primitive in (primitive for mesh in document.get("meshes", []) for primitive in mesh["primitives"] if primitive.get("mode") in _CHAINS):
        corners = np.arange(accessors[primitive["attributes"]["POSITION"]]["count"], dtype=np.int64)
        if "indices" in primitive:
            accessor = accessors[primitive["indices"]]
            view, kind = views[accessor["bufferView"]], _INDEX_TYPES[accessor["componentType"]]
            start = view.get("byteOffset", 0) + accessor.get("byteOffset", 0)
            corners = np.frombuffer(files[f"buffer {view['buffer']}"], kind, accessor["count"], start).astype(np.int64)
        listed = _CHAINS[primitive["mode"]](corners).astype("<u4").tobytes()
        primitive.update(mode=_LIST, indices=len(accessors))
        accessors.append({"bufferView": len(views), "componentType": 5125, "count": len(listed) // 4, "type": "SCALAR"})
        views.append({"buffer": len(buffers), "byteLength": len(listed)})
        files[f"buffer {len(buffers)}"] = listed
        buffers.append({"uri": f"buffer {len(buffers)}", "byteLength": len(listed)})
    for node in document.get("nodes", []):
        node.pop("camera", None)


def _gltf_faults(path: Path, document: dict[str, Any]) -> Iterator[str]:
    for extension in document.get("extensionsRequired", []):
        if not extension.startswith(_EXTENSIONS_OF_LOOKS):
            yield f"must not need the glTF extension {extension}: export it without compression or quantization"
    if any("sparse" in accessor for accessor in document.get("accessors", [])):
        yield "must not have sparse accessors"
    bare = [number for number, accessor in enumerate(document.get("accessors", [])) if "bufferView" not in accessor]
    if bare:
        yield f"accessors must have data (bufferView), got none for number {bare[0]}"
    (levels, uses), declared = _placements(document), _triangles(document)
    fits, fault = SCENE_TRIANGLES.rule(sum(triangles * max(uses[mesh], 1) for mesh, triangles in enumerate(declared)))
    if not fits:
        yield fault
    fits, fault = NODE_NESTING.rule(levels)
    if not fits:
        yield fault
    for buffer in document.get("buffers", []):
        if "uri" in buffer and _is_missing(path, buffer["uri"]):
            yield f"buffer {buffer['uri']!r} must be beside it, got no such file"


def _triangles(document: dict[str, Any]) -> list[int]:
    """Number of triangles of each mesh, by its own counts."""
    counts = [int(accessor["count"]) for accessor in document.get("accessors", [])]

    def triangles(primitive: dict[str, Any]) -> int:
        corners, mode = counts[primitive.get("indices", primitive["attributes"]["POSITION"])], primitive.get("mode", _LIST)
        return corners // 3 if mode == _LIST else max(corners - 2, 0) if mode in _CHAINS else 0

    return [sum(map(triangles, mesh["primitives"])) for mesh in document.get("meshes", [])]


def _placements(document: dict[str, Any]) -> tuple[int, Counter[int]]:
    """Depth of the scene's tree of nodes, more than the limit if it has a cycle, and the uses of each mesh; without a scene all nodes are in one."""
    nodes = document.get("nodes", [])
    if not document.get("scenes"):
        below = {child for node in nodes for child in node.get("children", [])}
        document.update(scenes=[{"nodes": [number for number in range(len(nodes)) if number not in below]}], scene=0)
    level, levels, uses = Counter(document["scenes"][document.get("scene", 0)].get("nodes", [])), 0, Counter[int]()
    while level and levels <= NODE_NESTING.bound:
        levels, above, level = levels + 1, level, Counter()
        for number, times in above.items():
            if "mesh" in nodes[number]:
                uses[nodes[number]["mesh"]] += times
            for child in nodes[number].get("children", []):
                level[child] += times
    return levels, uses


def _gltf_document(path: Path, data: bytes) -> tuple[dict[str, Any], bytes]:
    """Document, and the bytes of its binary chunk."""
    text, binary = _glb_chunks(path, data) if path.suffix.lower() == ".glb" else (data, b"")
    JSON_VALUES.enforce(text.count(b",") + text.count(b":"), str(path), AssetError)
    JSON_NESTING.enforce(nesting(text), str(path), AssetError)
    with library_reads(f"{path}: must hold a glTF document", AssetError):
        document = json.loads(text)
        version = document["asset"]["version"]
    if not str(version).startswith("2."):
        raise AssetError(f"{path}: glTF version must be 2, got {version}")
    return dict(document), binary


def _glb_chunks(path: Path, data: bytes) -> tuple[bytes, bytes]:
    """JSON and binary chunk; other chunks are for extensions."""
    if len(data) < _GLB_HEADER.size + _GLB_CHUNK.size or data[:4] != b"glTF":
        raise AssetError(f"{path}: must begin with glTF, got {data[:4]!r}")
    _, _, length = _GLB_HEADER.unpack_from(data)
    if length != len(data):
        raise AssetError(f"{path}: must be {length} bytes long by its header, got {len(data)} (cut short?)")
    size, kind = _GLB_CHUNK.unpack_from(data, _GLB_HEADER.size)
    start = _GLB_HEADER.size + _GLB_CHUNK.size
    if kind != b"JSON" or start + size > len(data):
        raise AssetError(f"{path}: must have a JSON chunk first, got {kind!r} of {size} bytes")
    text, binary, at = data[start : start + size], b"", start + size
    while at + _GLB_CHUNK.size <= len(data) and not binary:
        size, kind = _GLB_CHUNK.unpack_from(data, at)
        at += _GLB_CHUNK.size + size
        binary = data[at - size : at] if kind == b"BIN\0" else b""
    return text, binary


def _gltf_notes(path: Path, document: dict[str, Any]) -> list[str]:
    notes = [
        f"{path}: the extension {extension} is not read: the mesh is as it is without"
        for extension in document.get("extensionsUsed", [])
        if not extension.startswith((*_EXTENSIONS_OF_LOOKS, *_COMPRESSIONS))
    ]
    primitives = [primitive for mesh in document.get("meshes", []) for primitive in mesh.get("primitives", [])]
    left_out = sum(primitive.get("mode", _LIST) not in (_LIST, *_CHAINS) for primitive in primitives)
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
