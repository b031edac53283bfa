"""Points placed in the world: one scan, several scans, or a decimated map."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.api.points import DECODED_DTYPE
from hilsim.limits import VIEW_POINTS
from hilsim.read.scans.scan import Scan

Floats = npt.NDArray[np.float32]
_UNKNOWN = -1
_VOXEL_M = 0.05
_LARGEST_KEY = 1 << 20
"""Half the number of voxels on each axis; 21 bits of a key each."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Points that are shown together.

    Attributes:
        world: ``float32[n, 3]``, positions in the world in metres, relative to the page's origin.
        points: ``hilsim.api.points.DECODED_DTYPE[n]``.
        instance: ``int32[n]``, object of each point; -1 where it is unknown.
        label: ``int16[n]``, label of that object; -1 where it is unknown.
        sensor: ``uint8[n]``, number of the sensor on the page.
        begin_ns: ``int64[n]``, the smallest ``time`` of the point's scan.
        stamp_ns: UTC at which the newest scan was sent.
    """

    world: Floats
    points: npt.NDArray[Any]
    instance: npt.NDArray[np.int32]
    label: npt.NDArray[np.int16]
    sensor: npt.NDArray[np.uint8]
    begin_ns: npt.NDArray[np.int64]
    stamp_ns: int

    @property
    def size(self) -> int:
        """Number of points."""
        return self.points.size

    def at(self, chosen: Any) -> "Part":
        """Copy of the points at an index (a slice or an array)."""
        return replace(
            self,
            world=np.ascontiguousarray(self.world[chosen]),
            points=self.points[chosen].copy(),
            instance=self.instance[chosen].copy(),
            label=self.label[chosen].copy(),
            sensor=self.sensor[chosen].copy(),
            begin_ns=self.begin_ns[chosen].copy(),
        )


def joined(parts: Sequence[Part]) -> Part:
    """Join parts; none gives a part without points."""
    if len(parts) == 1:
        return parts[0]
    return Part(
        world=np.concatenate([np.empty((0, 3), np.float32), *(part.world for part in parts)]),
        points=np.concatenate([np.empty(0, DECODED_DTYPE), *(part.points for part in parts)]),
        instance=np.concatenate([np.empty(0, np.int32), *(part.instance for part in parts)]),
        label=np.concatenate([np.empty(0, np.int16), *(part.label for part in parts)]),
        sensor=np.concatenate([np.empty(0, np.uint8), *(part.sensor for part in parts)]),
        begin_ns=np.concatenate([np.empty(0, np.int64), *(part.begin_ns for part in parts)]),
        stamp_ns=max((part.stamp_ns for part in parts), default=0),
    )


def placed(scan: Scan, sensor: int, origin_m: npt.NDArray[np.float64]) -> Part:
    """Place the points of a scan in the world.

    Args:
        scan: Scan of a feed; its arrays are checked here.
        sensor: Number of the sensor on the page.
        origin_m: ``float64[3]``, the page's origin in the world.

    Raises:
        ValueError: arrays of the scan have different lengths or another type.
    """
    size = scan.points.size
    if scan.points.dtype != DECODED_DTYPE or scan.points.shape != (size,):
        raise ValueError(f"points of a scan must be DECODED_DTYPE[n], got {scan.points.dtype}{list(scan.points.shape)}")
    for name, values in (("instance", scan.instance), ("label", scan.label)):
        if values is not None and values.shape != (size,):
            raise ValueError(f"{name} of a scan must have one value for each of {size} points, got {list(values.shape)}")
    local = [np.ascontiguousarray(scan.points[name]) for name in "xyz"]
    finite = np.isfinite(local[0]) & np.isfinite(local[1]) & np.isfinite(local[2])
    if not finite.all():
        for values in local:
            values[~finite] = 0.0
    turn, shift = rotation(scan.wxyz).astype(np.float32), (np.asarray(scan.position_m, np.float64) - origin_m).astype(np.float32)
    world = np.empty((size, 3), np.float32)
    for row in range(3):  # a matrix product would wake BLAS's threads, which wait busily
        world[:, row] = local[0] * turn[row, 0] + local[1] * turn[row, 1] + local[2] * turn[row, 2] + shift[row]
    part = Part(
        world=world,
        points=scan.points,
        instance=_known(scan.instance, size, np.int32),
        label=_known(scan.label, size, np.int16),
        sensor=np.full(size, sensor, np.uint8),
        begin_ns=np.full(size, scan.points["time"].min() if size else 0, np.int64),
        stamp_ns=scan.stamp_ns,
    )
    return part if finite.all() else part.at(finite)


def rotation(wxyz: Sequence[float]) -> npt.NDArray[np.float64]:
    """Rotation matrix ``float64[3, 3]`` of a quaternion, which need not have unit length."""
    w, x, y, z = np.asarray(wxyz, np.float64) / max(float(np.linalg.norm(wxyz)), 1e-12)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def thinned(part: Part, most: int) -> Part:
    """Every k-th point, so that at most ``most`` remain."""
    stride = -(-part.size // most)
    return part if stride <= 1 else part.at(slice(None, None, stride))


def _known(values: npt.NDArray[Any] | None, size: int, dtype: type) -> npt.NDArray[Any]:
    return np.full(size, _UNKNOWN, dtype) if values is None else values.astype(dtype, copy=False)


class History:
    """Scans of the last seconds, with bounded memory: where they have too many points, every second point of all scans is dropped."""

    def __init__(self, most: int = VIEW_POINTS.bound) -> None:
        """Create a history of at most twice ``most`` points."""
        self._most = most
        self._parts: deque[tuple[int, Part]] = deque()
        self._stride = 1
        self._size = 0

    def add(self, part: Part, longest_ns: int) -> None:
        """Add a scan, and forget the scans that are older than the newest by more than ``longest_ns``."""
        self._append(part.size, part.at(slice(None, None, self._stride)) if self._stride > 1 else part)
        newest_ns = max(part.stamp_ns for _, part in self._parts)
        while self._parts and self._parts[0][1].stamp_ns < newest_ns - longest_ns:
            self._size -= self._parts.popleft()[1].size
        while self._size > 2 * self._most:
            self._halve()
        if self._stride > 1 and sum(size for size, _ in self._parts) <= self._most:
            self._stride = 1

    def _append(self, size: int, part: Part) -> None:
        self._parts.append((size, part))
        self._size += part.size

    def _halve(self) -> None:
        if all(part.size <= 1 for _, part in self._parts):
            self._size -= self._parts.popleft()[1].size
            return
        self._stride *= 2
        halved = [(size, part.at(slice(None, None, 2))) for size, part in self._parts]
        self._parts = deque(halved)
        self._size = sum(part.size for _, part in halved)

    @property
    def total(self) -> int:
        """Number of points of all scans, before points were dropped."""
        return sum(size for size, _ in self._parts)

    def parts(self) -> list[Part]:
        """Stored scans, oldest first."""
        return [part for _, part in self._parts]


class VoxelMap:
    """The first point in each cell of a grid, of all scans. The cells grow when there are too many.

    Attributes:
        cell_m: Edge of a cell.
        total: Number of points of all scans.
    """

    def __init__(self, most: int = VIEW_POINTS.bound) -> None:
        """Create an empty map of at most ``most`` points."""
        self.cell_m = _VOXEL_M
        self.total = 0
        self._most = most
        self._keys = np.empty(0, np.int64)
        self._parts: list[Part] = []

    def add(self, part: Part) -> None:
        """Add the points of a scan that are in new cells."""
        self.total += part.size
        keys, first = np.unique(self._keys_of(part.world), return_index=True)
        places = np.searchsorted(self._keys, keys)
        is_new = np.ones(keys.size, np.bool_)
        inside = places < self._keys.size
        is_new[inside] = self._keys[places[inside]] != keys[inside]
        if not is_new.any():
            return
        self._keys = np.insert(self._keys, places[is_new], keys[is_new])
        self._parts.append(part.at(first[is_new]))
        if len(self._parts) > 64:
            self._parts = [joined(self._parts)]
        while self._keys.size > self._most:
            self._coarsen()

    def _coarsen(self) -> None:
        self.cell_m *= 2.0
        whole = joined(self._parts)
        self._keys, first = np.unique(self._keys_of(whole.world), return_index=True)
        self._parts = [whole.at(np.sort(first))]

    def _keys_of(self, world: Floats) -> npt.NDArray[np.int64]:
        cells = np.clip(np.floor(world / np.float32(self.cell_m)), -_LARGEST_KEY, _LARGEST_KEY - 1).astype(np.int64) + _LARGEST_KEY
        keys: npt.NDArray[np.int64] = (cells[:, 0] << 42) | (cells[:, 1] << 21) | cells[:, 2]
        return keys

    def parts(self) -> list[Part]:
        """Points of the map."""
        return self._parts
