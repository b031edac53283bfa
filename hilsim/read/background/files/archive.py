"""Background maps as NPZ: the complete map, for hilsim and for NumPy.

===============  ==========================================================================
member           content
===============  ==========================================================================
``metadata``     text, no dimensions: the JSON of ``read.background.files.metadata``
``distance_mm``  ``uint32[rows, columns]``
``intensity``    ``uint16[rows, columns]``
``flags``        ``uint8[rows, columns]``
``hit_count``    ``uint32[rows, columns]``
``confidence``   ``float32[rows, columns]``
===============  ==========================================================================

``numpy.load(path)`` reads it, without pickles. Members have no time stamp, so with one version of zlib equal maps are equal files.
"""

from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from hilsim.errors import AssetError, library_reads
from hilsim.limits import MAP_METADATA_BYTES
from hilsim.read.background.files.metadata import check_cells, describe_map, read_metadata
from hilsim.read.background.files.whole_file import replace_file
from hilsim.world.assets.mesh_parts import read_bytes
from hilsim.world.scene.background import BackgroundMap

_DTYPES = {"distance_mm": "<u4", "intensity": "<u2", "flags": "|u1", "hit_count": "<u4", "confidence": "<f4"}
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # the earliest time in a ZIP file
_UNIX, _READABLE = 3, 0o644 << 16
_LEVEL = 6
_LARGEST_HEADER = 10_012
"""Bytes of an NPY header that NumPy believes, with the 12 before it."""


def write_archive(background: BackgroundMap, path: Path) -> None:
    """Write a complete map as NPZ, replacing an existing file.

    Raises:
        AssetError: the file cannot be written, or the map has more than ``MAX_CELLS`` cells.
    """
    check_cells(background.grid.rows, background.grid.columns, str(path))
    whole = BytesIO()
    with ZipFile(whole, "w") as archive:
        _add(archive, "metadata", np.array(describe_map(background)))
        for name, dtype in _DTYPES.items():
            _add(archive, name, getattr(background, name).astype(dtype, casting="safe"))
    replace_file(path, whole.getvalue())


def _add(archive: ZipFile, name: str, array: npt.NDArray[Any]) -> None:
    stored = BytesIO()
    np.lib.format.write_array(stored, array, allow_pickle=False)
    info = ZipInfo(f"{name}.npy", _EARLIEST)
    info.create_system, info.external_attr, info.compress_type = _UNIX, _READABLE, ZIP_DEFLATED
    archive.writestr(info, stored.getvalue(), compresslevel=_LEVEL)


def read_archive(path: Path) -> BackgroundMap:
    """Read the map of an NPZ file written by ``write_archive``.

    Raises:
        AssetError: the file cannot be read, is no such NPZ, is damaged, or violates a rule.
    """
    data = read_bytes(path)
    with library_reads(f"{path}: must be a whole NPZ file", AssetError, BadZipFile):
        archive = ZipFile(BytesIO(data))
    names = {"metadata", *_DTYPES}
    missing = sorted(name for name in names if f"{name}.npy" not in archive.namelist())
    if missing:
        raise AssetError(f"{path}: a background map must hold {', '.join(sorted(names))}; {', '.join(missing)} is missing")
    text = _member(archive, path, "metadata", MAP_METADATA_BYTES.bound)
    if text.dtype.kind != "U" or text.shape != ():
        raise AssetError(
            f"{path}: metadata must be one text, got {text.dtype.str if text.dtype.kind == 'U' else text.dtype.name} of shape {text.shape}"
        )
    with library_reads(f"{path}: metadata must be a text", AssetError):
        stored = text.item()
    metadata = read_metadata(stored, f"{path}: metadata")
    rows, columns = metadata["grid"].rows, metadata["grid"].columns
    arrays: dict[str, Any] = {}
    for name, required in ((name, np.dtype(stored)) for name, stored in _DTYPES.items()):
        array = arrays[name] = _member(archive, path, name, rows * columns * required.itemsize)
        if (array.dtype, array.shape) != (required, (rows, columns)):
            raise AssetError(
                f"{path}: {name} must be {required.name} of {rows} rows x {columns} columns, got {array.dtype.name} of shape {array.shape}"
            )
    try:
        return BackgroundMap(**metadata, **arrays)
    except ValueError as error:
        raise AssetError(f"{path}: {error}") from error


def _member(archive: ZipFile, path: Path, name: str, most_bytes: int) -> npt.NDArray[Any]:
    """Array of a member, whose numbers have at most ``most_bytes``: the size is checked before anything is decompressed."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise AssetError(f"{path}: {name} must be stored or deflated, got compression {info.compress_type}")
    if info.file_size > most_bytes + _LARGEST_HEADER:
        raise AssetError(f"{path}: {name} must have at most {most_bytes:,} bytes, got {info.file_size:,} with its header")
    with library_reads(f"{path}: {name} is damaged", AssetError, BadZipFile, TokenError, UserWarning), archive.open(info) as file:
        array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return array
