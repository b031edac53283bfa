"""Mesh files: OBJ, PLY and STL are read here, COLLADA through pycollada, glTF and GLB through trimesh; the libraries are imported only when such a file is used.

Files are not repaired: one that is truncated, references missing vertices or contains invalid numbers is rejected with the reason.
Precision: OBJ and the texts of STL and PLY keep all digits (UTM coordinates too), as do PLY files with ``double`` vertices; glTF, binary
STL and PLY with ``float`` vertices have 24-bit numbers, which means steps of 0.5 m at a northing of 5,000,000 m. Use ``position_m`` to place those.
"""

from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.errors import AssetError
from hilsim.limits import SCENE_TRIANGLES
from hilsim.world.assets.colours import shaded
from hilsim.world.assets.dae import read_dae
from hilsim.world.assets.extent import check_extent
from hilsim.world.assets.gltf import read_gltf
from hilsim.world.assets.library import is_in_library, library_mesh
from hilsim.world.assets.mesh_parts import MeshFile, MeshPart, read_bytes
from hilsim.world.assets.obj import read_obj
from hilsim.world.assets.ply import read_ply
from hilsim.world.assets.stl import read_stl
from hilsim.world.scene.materials import Material
from hilsim.world.scene.mesh import Mesh, areas_m2
from hilsim.world.scene.object_specs import MeshSpec

SUFFIXES = (".obj", ".ply", ".stl", ".dae", ".gltf", ".glb")
_SHOWN_NAMES, _SHOWN_CHARACTERS = 100, 200
_Y_UP = (".gltf", ".glb")
_Z_FROM_Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])


class Submesh(NamedTuple):
    """Part of a mesh file to use.

    Attributes:
        name: Name of its pieces.
        is_centred: Whether to centre each piece's bounding box at the origin.
    """

    name: str
    is_centred: bool = False


def has_y_up(spec: MeshSpec, path: Path) -> bool:
    """Whether the y axis of a mesh file is upright, not its z axis."""
    return spec.up == "y" or (spec.up == "auto" and path.suffix.lower() in _Y_UP)


def load_mesh(spec: MeshSpec, directory: Path, materials: dict[str, Material]) -> tuple[Mesh, tuple[str, ...]]:
    """Mesh of a file or of an object of the library, made by ``mesh_of``.

    Args:
        spec: Table of the rig.
        directory: Directory that the file's path is relative to.
        materials: All materials of the rig by name.

    Raises:
        AssetError: the file cannot be used; the message names it and the reason.
    """
    if is_in_library(spec.file):
        return mesh_of(Path(spec.file), library_mesh(spec.file), spec, materials)
    path = directory / spec.file
    return mesh_of(path, read_mesh(path, with_colours=spec.colours), spec, materials)


def mesh_of(
    path: Path, content: MeshFile, spec: MeshSpec, materials: dict[str, Material], submesh: Submesh | None = None
) -> tuple[Mesh, tuple[str, ...]]:
    """Mesh of a file in metres, z up, in the shape's own frame (``position_m`` and ``rotation_deg`` are not applied), and notes.

    A part's material is the one that ``spec.materials`` assigns to its name in the file, else the rig's of the same name, else ``spec.material`` with a note.

    Args:
        path: Path of the file, for messages.
        content: Contents of the file.
        spec: Table of the rig.
        materials: All materials of the rig by name.
        submesh: Part to use; None for all.

    Raises:
        AssetError: the file cannot be used; the message names it and the reason.
    """
    parts = content.parts
    starts = np.cumsum([0] + [len(part.vertices) for part in parts])
    triangles = np.concatenate([part.triangles + start for part, start in zip(parts, starts, strict=False)])
    with np.errstate(over="ignore", invalid="ignore"):  # overflow is rejected below
        vertices = np.concatenate([part.vertices for part in parts]) * spec.scale
    if has_y_up(spec, path):
        vertices = vertices @ _Z_FROM_Y_UP.T
    _check_rows(path, vertices, triangles)
    check_extent(path, vertices, triangles, lambda row: _vertex_name(parts, row))
    used = tuple(dict.fromkeys(name for part in parts for name in part.names))
    chosen, notes = _choose_materials(spec, used, materials, path)
    rows = np.concatenate([np.array([used.index(name) for name in part.names], dtype=np.int64)[part.material] for part in parts])
    if spec.colours:
        missing = [np.full(len(part.triangles), np.nan) if part.brightness is None else part.brightness for part in parts]
        rows, chosen = shaded(rows, chosen, np.concatenate(missing), areas_m2(vertices[triangles]))
        if all(part.brightness is None for part in parts):
            notes.append(f"{path}: has no colours that hilsim reads (those of PLY, glTF and GLB files); its materials are even")
    if submesh is not None:
        vertices, triangles, taken = _taken(path, parts, submesh, vertices, triangles)
        rows = rows[taken]
    try:
        mesh = Mesh(vertices, triangles.astype(np.int32), rows.astype(np.int32), chosen)
    except ValueError as error:
        raise AssetError(f"{path}: {error}") from error
    return mesh, (*content.notes, *notes)


def _taken(
    path: Path, parts: tuple[MeshPart, ...], submesh: Submesh, vertices: npt.NDArray[np.float64], triangles: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Vertices and triangles of the pieces of a name, three vertices per triangle, and the numbers of those triangles."""
    names = [name for part in parts for name in part.pieces]
    is_wanted = np.array([name == submesh.name for name in names])
    if not is_wanted.any():
        known = [f'"{name[:_SHOWN_CHARACTERS]}"' for name in dict.fromkeys(names) if name] or ["none with a name"]
        more = f" and {len(known) - _SHOWN_NAMES:,} more" if len(known) > _SHOWN_NAMES else ""
        raise AssetError(
            f'{path}: <submesh> must be one of the file\'s ({", ".join(known[:_SHOWN_NAMES])}{more}), got "{submesh.name[:_SHOWN_CHARACTERS]}"'
        )
    starts = np.cumsum([0] + [len(part.pieces) for part in parts])
    pieces = np.concatenate([part.piece + start for part, start in zip(parts, starts, strict=False) if part.piece is not None])
    taken = np.flatnonzero(is_wanted[pieces])
    taken = taken[np.argsort(pieces[taken], kind="stable")]
    corners = vertices[triangles[taken]]
    if submesh.is_centred:
        _, first, counts = np.unique(pieces[taken], return_index=True, return_counts=True)
        lowest, highest = np.minimum.reduceat(corners.min(axis=1), first), np.maximum.reduceat(corners.max(axis=1), first)
        corners -= np.repeat(0.5 * (lowest + highest), counts, axis=0)[:, np.newaxis]
    return corners.reshape(-1, 3), np.arange(3 * len(taken), dtype=np.int64).reshape(-1, 3), taken


def _check_rows(path: Path, vertices: npt.NDArray[np.float64], triangles: npt.NDArray[np.int64]) -> None:
    """Reject triangles with missing vertices, and more triangles than a scene may have."""
    SCENE_TRIANGLES.enforce(len(triangles), str(path), AssetError)
    outside = np.flatnonzero(((triangles < 0) | (triangles >= len(vertices))).any(axis=1))
    if len(outside):
        row = int(outside[0])
        raise AssetError(f"{path}: triangle {row} must name vertices 0 to {len(vertices) - 1}, got {triangles[row].tolist()}")


def _vertex_name(parts: tuple[MeshPart, ...], row: int) -> str:
    """Name of a vertex in messages: an OBJ file counts from 1, the others from 0."""
    number = row
    for part in parts:
        if row < len(part.vertices):
            return f"vertex {number}" if part.lines is None else f"vertex {number + 1} (line {part.lines[row]})"
        row -= len(part.vertices)
    raise ValueError(f"row must be one of the parts' vertices, got {number}")


def _choose_materials(spec: MeshSpec, used: tuple[str, ...], materials: dict[str, Material], path: Path) -> tuple[tuple[Material, ...], list[str]]:
    notes = []
    unknown = [name for name in used if name and name not in spec.materials and name not in materials]
    if unknown:
        names = ", ".join(f'"{name}"' for name in unknown)
        notes.append(f'{path}: no material of the rig is assigned to {names}; "{spec.material}" is used')
    absent = [name for name in spec.materials if name not in used]
    if absent:
        names = ", ".join(f'"{name}"' for name in absent)
        notes.append(f"{path}: the file has no material {names}")
    return tuple(materials[spec.materials.get(name, name if name in materials else spec.material)] for name in used), notes


def read_mesh(path: Path, *, with_colours: bool = False) -> MeshFile:
    """Read the contents of a mesh file.

    Args:
        path: The file.
        with_colours: Whether to read the colours of a PLY, glTF or GLB file.

    Raises:
        AssetError: the file cannot be used; the message names it and the reason.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise AssetError(f'{path}: a mesh file must be one of {", ".join(SUFFIXES)}, got "{path.suffix}"')
    if suffix == ".obj":
        return read_obj(path)
    data = read_bytes(path)
    text = data.removeprefix(BOM_UTF8)
    match suffix:
        case ".stl":
            return _whole(path, lambda: read_stl(path, data))
        case ".ply":
            return _whole(path, lambda: MeshFile(parts=read_ply(path, text, with_colours=with_colours)))
        case ".dae":
            return _whole(path, lambda: read_dae(path, text))
        case _:
            return _whole(path, lambda: read_gltf(path, text, with_colours=with_colours))


def _whole(path: Path, read: Callable[[], MeshFile]) -> MeshFile:
    """Result of a reader, whose libraries raise any exception."""
    try:
        with np.errstate(all="ignore"):  # overflow is rejected as not finite
            content = read()
    except AssetError:
        raise
    except Exception as error:  # readers raise any exception of their parsers; an operator needs the file's name, not a traceback
        reason = str(error).strip().splitlines()
        raise AssetError(f"{path}: cannot be read as {path.suffix[1:].upper()}: {reason[0] if reason else type(error).__name__}") from error
    if not any(len(part.triangles) for part in content.parts):
        raise AssetError(f"{path}: must have at least one triangle, got 0")
    return content
