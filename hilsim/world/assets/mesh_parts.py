"""Contents of a mesh file, before the rig's materials are assigned."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilsim.errors import AssetError
from hilsim.limits import ASSET_FILE_BYTES


@dataclass(frozen=True, kw_only=True, eq=False)
class MeshPart:
    """Triangles of one material, in the file's own units and axes.

    Attributes:
        vertices: ``float64[n, 3]``, vertices.
        triangles: ``int64[m, 3]``, rows of ``vertices``.
        material: ``int64[m]``, rows of ``names``.
        names: The file's material names; empty for a part without one.
        lines: ``int64[n]``, lines of the vertices in a text file; None if unknown.
        piece: ``int64[m]``, rows of ``pieces``.
        brightness: ``float64[m]``, linear brightness of each triangle's colour, 0 to 1; None if it has none or they were not read.
        pieces: Names of the part's pieces, in order, as Gazebo names them; a name may be repeated. Empty if unknown.
    """

    vertices: npt.NDArray[np.float64]
    triangles: npt.NDArray[np.int64]
    material: npt.NDArray[np.int64]
    names: tuple[str, ...]
    lines: npt.NDArray[np.int64] | None = None
    piece: npt.NDArray[np.int64] | None = None
    pieces: tuple[str, ...] = ()
    brightness: npt.NDArray[np.float64] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class MeshFile:
    """Contents of one file.

    Attributes:
        parts: Parts, at least one.
        notes: Notes on ignored parts, as sentences.
    """

    parts: tuple[MeshPart, ...]
    notes: tuple[str, ...] = ()

    @property
    def has_names(self) -> bool:
        """Whether the names of its pieces are known."""
        return all(part.pieces for part in self.parts)


def is_file(path: Path) -> bool:
    """Whether a file of that name exists; False also for a name that no file can have (too long, with a zero byte)."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def read_bytes(path: Path) -> bytes:
    """Read the bytes of an asset.

    Raises:
        AssetError: the file is missing, empty, not a file, too large or not readable.
    """
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise AssetError(f"{path}: must be a file, got a directory")
        if size == 0:
            raise AssetError(f"{path}: must not be empty, got 0 bytes")
        ASSET_FILE_BYTES.enforce(size, str(path), AssetError)
        return path.read_bytes()
    except FileNotFoundError:
        raise AssetError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise AssetError(f"{path}: cannot be read: {error}") from error
