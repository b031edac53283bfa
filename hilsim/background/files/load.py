"""Loading of a background map from any supported file."""

from pathlib import Path

from hilsim.assets.mesh_parts import read_bytes
from hilsim.background.files.archive import read_archive
from hilsim.background.files.bitmap import read_bitmap
from hilsim.background.files.metadata import Grid
from hilsim.errors import AssetError
from hilsim.scene.background import BackgroundMap

_ZIP, _BMP = b"PK", b"BM"


def load_map(path: Path, *, grid: Grid | None = None) -> BackgroundMap:
    """Read the map of an NPZ or 32-bit BMP file, recognised by its content.

    Args:
        path: Path of the file.
        grid: Grid of another program's bitmap; for hilsim's own files it must equal the file's, if given.

    Raises:
        AssetError: the file cannot be read, is neither, is damaged, or does not match the grid.
    """
    start = read_bytes(path)[: len(_ZIP)]
    if start == _ZIP:
        return read_archive(path, grid=grid)
    if start == _BMP:
        return read_bitmap(path, grid=grid)
    raise AssetError(f"{path}: a background map must be an NPZ or 32-bit BMP file, got one that starts with {start!r}")
