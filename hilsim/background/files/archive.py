"""Background maps as NPZ: the complete map, for hilsim and for NumPy.

===============  ==========================================================================
member           content
===============  ==========================================================================
``metadata``     text, no dimensions: the JSON of ``background.files.metadata``
``distance_mm``  ``uint32[rows, columns]``
``intensity``    ``uint16[rows, columns]``
``flags``        ``uint8[rows, columns]``
``hit_count``    ``uint32[rows, columns]``
``confidence``   ``float32[rows, columns]``
===============  ==========================================================================

``numpy.load(path)`` reads it, without pickles. Members have no time stamp, so with one version of zlib equal maps are equal files.
"""

import math
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from hilsim.assets.mesh_parts import read_bytes
from hilsim.background.files.metadata import Grid, check_cells, describe_map, read_metadata
from hilsim.background.files.whole_file import replace_file
from hilsim.errors import AssetError, library_reads
from hilsim.limits import MAP_METADATA_BYTES
from hilsim.scene.background import BackgroundMap

_DTYPES = {"distance_mm": "<u4", "intensity": "<u2", "flags": "|u1", "hit_count": "<u4", "confidence": "<f4"}
_READ_HEADER = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # the earliest time in a ZIP file
_UNIX, _READABLE = 3, 0o644 << 16
_LEVEL = 6


def write_archive(background: BackgroundMap, path: Path) -> None:
    """Write a complete map as NPZ, replacing an existing file.

    Raises:
        AssetError: the file cannot be written, or the map has more than ``MOST_CELLS`` cells.
    """
    check_cells(background.grid.rows, background.grid.columns, str(path))
    whole = BytesIO()
    with ZipFile(whole, "w") as archive:
        _add(archive, "metadata", np.array(describe_map(background)))
        for name, dtype in _DTYPES.items():
            _add(archive, name, getattr(background, name).astype(dtype, casting="safe"))
    replace_file(path, whole.getvalue())


def read_archive(path: Path, *, grid: Grid | None = None) -> BackgroundMap:
    """Read the map of an NPZ file written by ``write_archive``.

    Args:
        path: Path of the file.
        grid: Required grid, if given.

    Raises:
        AssetError: the file cannot be read, is no such NPZ, is damaged, violates a rule, or has another grid.
    """
    data = read_bytes(path)
    with _open(path, data) as archive:
        metadata = read_metadata(_text(archive, path), f"{path}: metadata", expected=grid)
        shape = metadata.grid.rows, metadata.grid.columns
        arrays = {name: _cells(archive, path, name, shape) for name in _DTYPES}
    try:
        return BackgroundMap(grid=metadata.grid, model=metadata.model, pose=metadata.pose, provenance=metadata.provenance, **arrays)
    except ValueError as error:
        raise AssetError(f"{path}: {error}") from error


def _add(archive: ZipFile, name: str, array: npt.NDArray[Any]) -> None:
    stored = BytesIO()
    np.lib.format.write_array(stored, array, allow_pickle=False)
    info = ZipInfo(f"{name}.npy", _EARLIEST)
    info.create_system, info.external_attr, info.compress_type = _UNIX, _READABLE, ZIP_DEFLATED
    archive.writestr(info, stored.getvalue(), compresslevel=_LEVEL)


def _open(path: Path, data: bytes) -> ZipFile:
    with library_reads(f"{path}: must be a whole NPZ file", AssetError, BadZipFile):
        archive = ZipFile(BytesIO(data))
    held = set(archive.namelist())
    names = {"metadata", *_DTYPES}
    missing = sorted(name for name in names if f"{name}.npy" not in held)
    if missing:
        raise AssetError(f"{path}: a background map must hold {', '.join(sorted(names))}; {', '.join(missing)} is missing")
    return archive


def _text(archive: ZipFile, path: Path) -> str:
    """Metadata: one text, in NumPy's four bytes per character."""

    def check(dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        if dtype.kind != "U" or shape != ():
            raise AssetError(f"{path}: metadata must be one text, got {dtype.str if dtype.kind == 'U' else dtype.name} of shape {shape}")
        MAP_METADATA_BYTES.enforce(dtype.itemsize, str(path), AssetError)

    member = _member(archive, path, "metadata", check)
    try:
        return member.tobytes().decode("utf-32-be" if member.dtype.byteorder == ">" else "utf-32-le").rstrip("\0")
    except UnicodeDecodeError as error:
        raise AssetError(f"{path}: metadata must be a text: {error}") from error


def _cells(archive: ZipFile, path: Path, name: str, shape: tuple[int, int]) -> npt.NDArray[Any]:
    """Array of the map, checked for shape and type."""
    required = np.dtype(_DTYPES[name])

    def check(dtype: np.dtype[Any], found: tuple[int, ...]) -> None:
        if dtype != required or found != shape:
            raise AssetError(f"{path}: {name} must be {required.name} of {shape[0]} rows x {shape[1]} columns, got {dtype.name} of shape {found}")

    return _member(archive, path, name, check)


def _member(archive: ZipFile, path: Path, name: str, check: Callable[[np.dtype[Any], tuple[int, ...]], None]) -> npt.NDArray[Any]:
    """Array of a member, read-only; ``check`` rejects a type or shape before the numbers are decompressed."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise AssetError(f"{path}: {name} must be stored or deflated, got compression {info.compress_type}")
    with library_reads(f"{path}: {name} is damaged", AssetError, BadZipFile, TokenError, UserWarning), archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        if version not in _READ_HEADER:
            raise AssetError(f"{path}: {name} must be an array of format 1 or 2, got {version[0]}.{version[1]}")
        shape, is_fortran, dtype = _READ_HEADER[version](file)
        check(dtype, shape)
        size = file.tell() + math.prod(shape) * dtype.itemsize
        if info.file_size != size:
            raise AssetError(f"{path}: {name} must have {size} bytes by its header, got {info.file_size}")
        return np.frombuffer(file.read(), dtype, math.prod(shape)).reshape(shape, order="F" if is_fortran else "C")
