"""Map of returns that grows while scans come, for a page that shows what changed."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.read.analysis.map_files import write_map
from hilsim.read.analysis.returns_map import BlockCells, ReturnsMap
from hilsim.read.scans.scan import Scan


class ChangedBlocks(NamedTuple):
    """Blocks of 16 x 16 x 16 cells that have got returns since a number.

    Attributes:
        number: Number to ask with the next time.
        blocks: Cells of each changed block; a block's number remains its own.
        is_new: Whether the map was begun anew: blocks of before are gone.
    """

    number: int
    blocks: Sequence[BlockCells]
    is_new: bool


class GrowingMap:
    """Map of the returns of scans with poses, in bounded memory; any thread may add, read and write it to a file.

    All points of a scan are placed by its one pose, so a sensor that moves smears by what it moves in half a turn: at 10 m/s and 10 Hz half a metre.
    ``hilsim map`` places each point by the pose at its own time.
    """

    def __init__(self, *, cell_m: float = 0.2, memory_mb: float = 256.0) -> None:
        """Create an empty map.

        Args:
            cell_m: Edge of a cell.
            memory_mb: Most memory for blocks; returns in further blocks are counted and left out.

        Raises:
            ValueError: an argument is out of bounds.
        """
        self._memory_mb = memory_mb
        self._map = ReturnsMap(cell_m, memory_mb)
        self._number = 1
        self._begun = 1
        self._changed_at = np.zeros(0, np.int64)
        self._changing = threading.Lock()

    @property
    def cell_m(self) -> float:
        """Edge of a cell."""
        return self._map.cell_m

    @property
    def blocks(self) -> int:
        """Number of blocks in use."""
        return self._map.blocks

    @property
    def left_out(self) -> int:
        """Number of returns for which there was no memory, or that were too far away."""
        return self._map.left_out

    def add(self, scan: Scan) -> None:
        """Add the points of a scan at its pose."""
        positions_m = placed(scan)
        with self._changing:
            changed = self._map.add_noting(positions_m)
            if self._changed_at.size < self._map.blocks:
                grown = np.zeros(max(2 * self._changed_at.size, self._map.blocks, 64), np.int64)
                grown[: self._changed_at.size] = self._changed_at
                self._changed_at = grown
            self._changed_at[changed] = self._number + 1 + np.arange(changed.size)
            self._number += changed.size

    def changed_since(self, number: int = 0, *, min_count: int = 1, most: int = 4096) -> ChangedBlocks:
        """Blocks that have changed since a number, those that changed first, at most ``most``.

        Args:
            number: ``number`` of the last call; 0: all blocks.
            min_count: Fewest returns of a cell.
            most: Most blocks at once; the next call gives the following ones.
        """
        with self._changing:
            is_new = 0 < number < self._begun
            since = 0 if is_new else number
            used = self._changed_at[: self._map.blocks]
            found = np.flatnonzero(used > since)
            found = found[np.argsort(used[found])][:most]
            reached = int(used[found[-1]]) if found.size else self._number
            return ChangedBlocks(reached, [self._map.block_cells(int(block), min_count) for block in found], is_new)

    def clear(self) -> None:
        """Begin anew."""
        with self._changing:
            self._map = ReturnsMap(self._map.cell_m, self._memory_mb)
            self._changed_at = np.zeros(0, np.int64)
            self._number += 1
            self._begun = self._number

    def write(self, path: str | Path, *, min_count: int = 1) -> None:
        """Write the map to a file: ``.ply``, ``.las`` or ``.npz``.

        Raises:
            ConfigError: the type is unknown, needs a package that is missing, or cannot hold the cells.
            OSError: the file cannot be written.
        """
        with self._changing:
            cells = self._map.cells(min_count)
        write_map(Path(path), cells, self.cell_m)


def placed(scan: Scan) -> npt.NDArray[np.float64]:
    """Positions of a scan's points in the world, ``float64[n, 3]``, all by the scan's one pose."""
    w, x, y, z = scan.wxyz
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    points = np.stack([scan.points["x"], scan.points["y"], scan.points["z"]], axis=1).astype(np.float64)
    return np.asarray(points @ rotation.T + np.asarray(scan.position_m))
