"""Contents of a mesh file, before a rig assigns its materials."""

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
        vertices: ``float64[n, 3]``.
        triangles: ``int64[m, 3]``.
        material: ``int64[m]``, rows of ``names``.
        names: The file's material names; empty text where it names none.
        lines: ``int64[n]``, lines of the vertices in a text file; None where they are not known.
        piece: ``int64[m]``, rows of ``pieces``.
        pieces: Names of what the part is made of, one after the other, as Gazebo names them; a name may come more than once. Empty where they are not known.
    """

    vertices: npt.NDArray[np.float64]
    triangles: npt.NDArray[np.int64]
    material: npt.NDArray[np.int64]
    names: tuple[str, ...]
    lines: npt.NDArray[np.int64] | None = None
    piece: npt.NDArray[np.int64] | None = None
    pieces: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class MeshFile:
    """Everything read from one file.

    Attributes:
        parts: At least one.
        notes: What was left out, as sentences.
    """

    parts: tuple[MeshPart, ...]
    notes: tuple[str, ...] = ()

    @property
    def has_names(self) -> bool:
        """Whether the names of its pieces are known."""
        return all(part.pieces for part in self.parts)


def is_file(path: Path) -> bool:
    """Whether there is a file of that name; False also for a name that no file can have (too long, with a zero byte)."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def read_bytes(path: Path) -> bytes:
    """The bytes of an asset.

    Raises:
        AssetError: the file is missing, empty, no file, too large or not readable.
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
