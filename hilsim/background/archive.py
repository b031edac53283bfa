"""Background maps as NPZ: all of a map, for hilsim and for NumPy.

===============  ==========================================================================
member           what
===============  ==========================================================================
``metadata``     text, no dimensions: the JSON of ``background.metadata``
``distance_mm``  ``uint32[rows, columns]``
``intensity``    ``uint16[rows, columns]``
``flags``        ``uint8[rows, columns]``
``hit_count``    ``uint32[rows, columns]``
``confidence``   ``float32[rows, columns]``
===============  ==========================================================================

``numpy.load(path)`` reads it, without pickles. Members have no time of their own, so with one version of zlib equal maps are equal files.
"""

import zlib
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from hilsim.assets.mesh_parts import read_bytes
from hilsim.background.files import replace_file
from hilsim.background.metadata import Grid, check_cells, describe_map, read_metadata
from hilsim.errors import AssetError
from hilsim.scene.background import BackgroundMap

_DTYPES = {"distance_mm": "<u4", "intensity": "<u2", "flags": "|u1", "hit_count": "<u4", "confidence": "<f4"}
_MOST_METADATA_BYTES = 1 << 28
_MOST_HEADER_BYTES = 1 << 16  # of a member's own header
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # a ZIP file knows no earlier time
_UNIX, _READABLE = 3, 0o644 << 16
_LEVEL = 6
# What zipfile and NumPy raise for damaged, encrypted or otherwise compressed members.
_FAULTS = (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)


def write_archive(background: BackgroundMap, path: Path) -> None:
    """Write all of a map as NPZ, replacing what is there.

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
    """The map in an NPZ file that ``write_archive`` made.

    Args:
        path: The file.
        grid: The grid that it must have, where it is given.

    Raises:
        AssetError: the file cannot be read, is no such NPZ, is damaged, breaks a rule, or has another grid.
    """
    data = read_bytes(path)
    try:
        with ZipFile(BytesIO(data)) as archive:
            names = {"metadata", *_DTYPES}
            missing = sorted(names - {name.removesuffix(".npy") for name in archive.namelist()})
            if missing:
                raise AssetError(f"{path}: a background map must hold {', '.join(sorted(names))}; {', '.join(missing)} is missing")
            text = _member(archive, path, "metadata", _MOST_METADATA_BYTES)
            if text.dtype.kind != "U" or text.shape != ():
                raise AssetError(f"{path}: metadata must be one text, got {text.dtype} of shape {text.shape}")
            metadata = read_metadata(str(text), f"{path}: metadata", expected=grid)
            shape = metadata.grid.rows, metadata.grid.columns
            arrays = {name: _cells(archive, path, name, shape) for name in _DTYPES}
    except BadZipFile as error:
        raise AssetError(f"{path}: must be a whole NPZ file: {error}") from error
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


def _cells(archive: ZipFile, path: Path, name: str, shape: tuple[int, int]) -> npt.NDArray[Any]:
    """An array of the map, of the shape and type it must have."""
    dtype = np.dtype(_DTYPES[name])
    array = _member(archive, path, name, shape[0] * shape[1] * dtype.itemsize)
    if array.dtype != dtype or array.shape != shape:
        raise AssetError(
            f"{path}: {name} must be {dtype.name} of {shape[0]} rows x {shape[1]} columns, got {array.dtype.name} of shape {array.shape}"
        )
    return array


def _member(archive: ZipFile, path: Path, name: str, most_bytes: int) -> npt.NDArray[Any]:
    """An array of the archive; its size is checked before it is decompressed."""
    size = archive.getinfo(f"{name}.npy").file_size
    if size > most_bytes + _MOST_HEADER_BYTES:
        raise AssetError(f"{path}: {name} must have at most {most_bytes} bytes and a header, got {size}")
    try:
        stored = BytesIO(archive.read(f"{name}.npy"))
        array: npt.NDArray[Any] = np.lib.format.read_array(stored, allow_pickle=False)
    except _FAULTS as error:
        raise AssetError(f"{path}: {name} is damaged: {error}") from error
    return array
