"""Map of returns: a sparse grid of cells, each with the number of returns in it and their mean position.

Surfaces fill few of the cells of space, so cells lie in blocks of 16 x 16 x 16, and only blocks with a return are stored; a block's cells are contiguous.
The mean position places a surface more precisely than the cell's centre ("Sensor emulator", on aggregating lidar returns; ``docs/how-to/map-returns.md``).
Memory is bounded: returns in blocks that do not fit are counted and left out.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.errors import require
from hilsim.limits import COORDINATE_M
from hilsim.world.geometry.rotations import rotate
from hilsim.world.platforms.platform import Platform, platform_state

BLOCK_CELLS = 16
"""Cells of a block along each axis."""
_CELLS = BLOCK_CELLS**3
_CELL_BYTES = 16  # a count and three coordinates
_AXIS_BITS = 21
_MAX_BLOCK = 1 << (_AXIS_BITS - 1)  # blocks from the first one along an axis: 1000 km with cells of 6 cm
_MAX_M = COORDINATE_M.bound
_SPREAD = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio: spreads neighbouring keys over the table
_SIDE, _CELL_COUNT, _MAX_CELL, _BITS = constant(BLOCK_CELLS), constant(_CELLS), constant(_MAX_BLOCK), constant(_AXIS_BITS)
_BLOCKS, _LEFT_OUT, _FIRST, _TOO_FAR = constant(0), constant(1), constant(2), constant(5)


class Grid(NamedTuple):
    """Kernel-side grid; the arrays are allocated for the most blocks, and the system provides their memory when it is used.

    Attributes:
        cell_m: Edge of a cell.
        slot: ``int64[t]``, table of blocks by their places: 1 + the number of a block, 0 for none; t is a power of two.
        place: ``int64[b]``, coordinates of each block, packed.
        returns: ``int64[b, 4096]``, number of returns in each cell.
        mean_m: ``float32[b, 4096, 3]``, their mean position relative to the block's corner.
        words: ``int64[6]``: number of blocks, number of returns left out, coordinates of the first block, from which places count, number of returns too far away.
    """

    cell_m: float
    slot: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    returns: npt.NDArray[np.uint32]
    mean_m: npt.NDArray[np.float32]
    words: npt.NDArray[np.int64]


class Cells(NamedTuple):
    """Cells with returns.

    Attributes:
        position_m: ``float64[n, 3]``, mean position of the returns in each cell.
        returns: ``int64[n]``, how many there are.
    """

    position_m: npt.NDArray[np.float64]
    returns: npt.NDArray[np.int64]


class BlockCells(NamedTuple):
    """Cells with returns of one block.

    Attributes:
        number: Number of the block, in the order in which blocks were first met.
        corner_m: Lowest corner of the block.
        cell: ``int16[n]``, place of each cell in the block: ``(i * 16 + j) * 16 + k`` along x, y, z.
        position_m: ``float32[n, 3]``, mean position of the returns in each cell, from the corner.
        returns: ``uint32[n]``, how many there are.
    """

    number: int
    corner_m: tuple[float, float, float]
    cell: npt.NDArray[np.int16]
    position_m: npt.NDArray[np.float32]
    returns: npt.NDArray[np.uint32]


@kernel
def _block_of(grid: Grid, key: int) -> int:
    """Number of the block at a place, added where there is none; -1 where there is no room for it."""
    mask = grid.slot.size - 1
    at = np.int64((np.uint64(key) * np.uint64(_SPREAD)) >> np.uint64(20)) & mask
    while grid.slot[at] != 0:
        number = grid.slot[at] - 1
        if grid.place[number] == key:
            return int(number)
        at = (at + 1) & mask
    number = grid.words[_BLOCKS]
    if number >= grid.place.size:
        return -1
    grid.words[_BLOCKS] = number + 1
    grid.place[number] = key
    grid.slot[at] = number + 1
    return int(number)


@kernel
def _add(grid: Grid, points_m: npt.NDArray[np.float64], touched: npt.NDArray[np.uint8]) -> None:
    known, number = -1, -1
    for row in range(points_m.shape[0]):
        x, y, z = points_m[row, 0] / grid.cell_m, points_m[row, 1] / grid.cell_m, points_m[row, 2] / grid.cell_m
        if not (abs(points_m[row, 0]) <= _MAX_M and abs(points_m[row, 1]) <= _MAX_M and abs(points_m[row, 2]) <= _MAX_M):
            grid.words[_TOO_FAR] += 1
            continue
        i, j, k = math.floor(x), math.floor(y), math.floor(z)
        bi, bj, bk = i // _SIDE, j // _SIDE, k // _SIDE
        if grid.words[_BLOCKS] == 0:
            grid.words[_FIRST], grid.words[_FIRST + 1], grid.words[_FIRST + 2] = bi, bj, bk
        ai, aj, ak = bi - grid.words[_FIRST] + _MAX_CELL, bj - grid.words[_FIRST + 1] + _MAX_CELL, bk - grid.words[_FIRST + 2] + _MAX_CELL
        if not (0 <= ai < 2 * _MAX_CELL and 0 <= aj < 2 * _MAX_CELL and 0 <= ak < 2 * _MAX_CELL):
            grid.words[_TOO_FAR] += 1
            continue
        key = ((ai << _BITS | aj) << _BITS) | ak
        if key != known:  # neighbouring returns are often in one block
            known, number = key, _block_of(grid, key)
        if number < 0:
            grid.words[_LEFT_OUT] += 1
            continue
        cell = ((i - bi * _SIDE) * _SIDE + (j - bj * _SIDE)) * _SIDE + (k - bk * _SIDE)
        count = grid.returns[number, cell] + np.uint32(1)
        grid.returns[number, cell] = count
        touched[number] = 1
        for axis, within in ((0, x - bi * _SIDE), (1, y - bj * _SIDE), (2, z - bk * _SIDE)):
            mean = grid.mean_m[number, cell, axis]
            grid.mean_m[number, cell, axis] = mean + (np.float32(within * grid.cell_m) - mean) / np.float32(count)


@kernel
def place_points(
    platform: Platform,
    mount_m: npt.NDArray[np.float64],
    mount_orientation: npt.NDArray[np.float64],
    time_ns: npt.NDArray[np.int64],
    points_m: npt.NDArray[np.float64],
) -> None:
    """Transform points of a sensor's frame to the world, in place, each from the pose at its own time.

    Args:
        platform: Carries the sensor.
        mount_m: ``float64[3]``, position of the sensor in the platform's body frame.
        mount_orientation: ``float64[4]``, body from sensor.
        time_ns: ``int64[n]``, time of each point on the platform's track.
        points_m: ``float64[n, 3]``.
    """
    mounted = (mount_orientation[0], mount_orientation[1], mount_orientation[2], mount_orientation[3])
    for row in range(points_m.shape[0]):
        x, y, z = rotate(mounted, (points_m[row, 0], points_m[row, 1], points_m[row, 2]))
        (px, py, pz), body = platform_state(platform, time_ns[row])
        x, y, z = rotate(body, (x + mount_m[0], y + mount_m[1], z + mount_m[2]))
        points_m[row, 0], points_m[row, 1], points_m[row, 2] = px + x, py + y, pz + z


class ReturnsMap:
    """Map of returns that grows as returns are added.

    Args:
        cell_m: Edge of a cell.
        memory_mb: Most memory for blocks; a block takes 64 KiB.

    Raises:
        ValueError: an argument is out of bounds.
    """

    def __init__(self, cell_m: float = 0.2, memory_mb: float = 512.0) -> None:
        require(
            (0.001 <= cell_m <= 100.0, f"cell_m must be 0.001 to 100, got {cell_m}"),
            (1.0 <= memory_mb <= 1e6, f"memory_mb must be 1 to 1000000, got {memory_mb}"),
        )
        blocks = int(memory_mb * 1e6 / (_CELLS * _CELL_BYTES))
        self._grid = Grid(
            cell_m=float(cell_m),
            slot=np.zeros(1 << (2 * blocks).bit_length(), np.int64),
            place=np.zeros(blocks, np.int64),
            returns=np.zeros((blocks, _CELLS), np.uint32),
            mean_m=np.zeros((blocks, _CELLS, 3), np.float32),
            words=np.zeros(6, np.int64),
        )
        self._touched = np.zeros(blocks, np.uint8)

    @property
    def cell_m(self) -> float:
        """Edge of a cell."""
        return self._grid.cell_m

    @property
    def blocks(self) -> int:
        """Number of blocks in use."""
        return int(self._grid.words[_BLOCKS])

    @property
    def left_out(self) -> int:
        """Number of returns that were left out: in blocks for which there was no memory, or too far from the first one."""
        return int(self._grid.words[_LEFT_OUT]) + self.too_far

    @property
    def too_far(self) -> int:
        """Number of returns that were left out because they were too far from the first one or from the origin, or not finite."""
        return int(self._grid.words[_TOO_FAR])

    def add(self, points_m: npt.NDArray[np.float64]) -> None:
        """Add returns at positions ``float64[n, 3]`` in the world; what is not finite is left out."""
        _add(self._grid, np.ascontiguousarray(points_m, np.float64), self._touched)

    def add_noting(self, points_m: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Add returns as ``add`` does; returns the numbers of the blocks that got some."""
        self._touched[:] = 0
        self.add(points_m)
        return np.flatnonzero(self._touched[: self.blocks])

    def block_cells(self, block: int, min_count: int = 1) -> BlockCells:
        """Cells of a block, by its number, with at least so many returns."""
        returns = self._grid.returns[block]
        cell = np.flatnonzero(returns >= max(min_count, 1))
        x, y, z = ((self._block_places(np.array([block]))[0] + self._grid.words[2:5]) * (BLOCK_CELLS * self.cell_m)).tolist()
        return BlockCells(block, (x, y, z), cell.astype(np.int16), self._grid.mean_m[block, cell], returns[cell])

    def cells(self, min_count: int = 1) -> Cells:
        """Cells with at least so many returns, block by block in the order in which they were first met."""
        used = self.blocks
        returns = self._grid.returns[:used]
        block, cell = np.nonzero(returns >= max(min_count, 1))
        corner = (self._block_places(block) + self._grid.words[2:5]) * (BLOCK_CELLS * self.cell_m)
        position_m = np.asarray(corner + self._grid.mean_m[block, cell], np.float64)
        return Cells(position_m, returns[block, cell].astype(np.int64))

    def _block_places(self, block: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Places of blocks from the first one along each axis, ``int64[n, 3]``."""
        place = self._grid.place[block]
        mask = (1 << _AXIS_BITS) - 1
        return np.asarray(np.stack([place >> shift & mask for shift in (2 * _AXIS_BITS, _AXIS_BITS, 0)], axis=1) - _MAX_BLOCK)
