"""Point-cloud files of scans: PCD, PLY, LAS and LAZ, NPZ, CSV."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import ConfigError
from hilsim.show.outputs.events import Event, OutputScan

_LAS_UNIT_M = 0.001
_LAS_SPAN_M = 2_000_000.0  # 2^31 units
_GPS_EPOCH_S = 315_964_800
"""UTC of the beginning of GPS time, 1980-01-06."""
_LEAPS_BEFORE, _LEAPS_S = 14, np.array([1_230_768_000, 1_341_100_800, 1_435_708_800, 1_483_228_800])
"""Seconds by which GPS time was ahead of UTC in 2008, and the leap seconds since then: the beginnings of 2009 and 2017, July 2012 and 2015 (IERS)."""
_PLY_TYPES = {"f4": "float", "f8": "double", "u1": "uchar", "u2": "ushort", "i2": "short", "i4": "int", "u4": "uint"}


def _dtype(coordinate: str) -> np.dtype[Any]:
    return np.dtype(
        [
            *((axis, coordinate) for axis in "xyz"),
            ("intensity", "<f4"),
            ("ring", "<u2"),
            ("return_type", "u1"),
            ("time", "<f8"),
            ("label", "<i2"),
            ("instance", "<i4"),
        ]
    )


FILE_DTYPE, WORLD_DTYPE = _dtype("<f4"), _dtype("<f8")
"""A point in a file of one or of several scans: as ``OUTPUT_DTYPE``, and ``time``, UTC of its firing in seconds since 1970; a family's own fields follow."""


def file_points(scan: OutputScan, *, in_world: bool = False) -> npt.NDArray[Any]:
    """Points of a scan as ``FILE_DTYPE``; or ``in_world``, where the sensor's pose is known, as ``WORLD_DTYPE``; with further fields of the scan."""
    dtype, further = WORLD_DTYPE if in_world else FILE_DTYPE, scan.further
    points = np.zeros(scan.points.size, dtype if further is None else np.dtype([*dtype.descr, *further.dtype.descr]))
    if further is not None:
        points[[*(further.dtype.names or ())]] = further
    for name in ("x", "y", "z", "intensity", "ring", "return_type", "label", "instance"):
        points[name] = scan.points[name]
    if in_world and scan.world_m is not None:
        points["x"], points["y"], points["z"] = scan.world_m.T
    points["time"] = scan.stamp_ns // 1_000_000_000 + (scan.stamp_ns % 1_000_000_000 + scan.points["offset_ns"]) / 1e9
    return points


def _code(kind: np.dtype[Any]) -> str:
    return f"{kind.kind}{kind.itemsize}"


def write_pcd(path: Path, points: npt.NDArray[Any]) -> None:
    """PCD 0.7, binary."""
    names = points.dtype.names or ()
    kinds = [points.dtype[name] for name in names]
    header = (
        "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\n"
        f"FIELDS {' '.join(names)}\nSIZE {' '.join(str(kind.itemsize) for kind in kinds)}\nTYPE {' '.join(kind.kind.upper() for kind in kinds)}\n"
        f"COUNT {' '.join('1' for _ in kinds)}\nWIDTH {points.size}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {points.size}\nDATA binary\n"
    )
    path.write_bytes(header.encode() + points.tobytes())


def write_ply(path: Path, points: npt.NDArray[Any]) -> None:
    """PLY 1.0, binary little-endian."""
    names = points.dtype.names or ()
    properties = "".join(f"property {_PLY_TYPES[_code(points.dtype[name])]} {name}\n" for name in names)
    header = f"ply\nformat binary_little_endian 1.0\ncomment hilsim scan, metres, x forward, y left\nelement vertex {points.size}\n{properties}end_header\n"
    path.write_bytes(header.encode() + points.tobytes())


def write_npz(path: Path, points: npt.NDArray[Any]) -> None:
    """One array a field, compressed."""
    fields: dict[str, Any] = {name: points[name] for name in points.dtype.names or ()}
    np.savez_compressed(path, **fields)


def write_csv(path: Path, points: npt.NDArray[Any]) -> None:
    """A line of names, then a line a point."""
    names = points.dtype.names or ()
    formats = {"f4": "%.4f", "f8": "%.9f"}
    with path.open("w") as file:
        file.write(",".join(names) + "\n")
        np.savetxt(file, points, fmt=[formats.get(_code(points.dtype[name]), "%d") for name in names], delimiter=",")


def adjusted_gps_s(utc_s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Seconds since 1970 UTC as LAS's adjusted standard GPS time: seconds since the GPS epoch, less 10^9."""
    leaps = np.searchsorted(_LEAPS_S, utc_s, side="right") + _LEAPS_BEFORE
    return np.asarray(utc_s - _GPS_EPOCH_S - 1e9 + leaps, np.float64)


def write_las(path: Path, points: npt.NDArray[Any]) -> None:
    """LAS 1.4 (or LAZ by the path's suffix), point format 6, with ``ring``, ``label``, ``instance`` and further fields as extra dimensions and adjusted standard GPS time.

    Raises:
        ConfigError: the extent is larger than the format holds.
    """
    import laspy  # noqa: PLC0415 - an extra

    header = laspy.LasHeader(point_format=6, version="1.4")
    texts = {"ring": "laser", "label": "label of the object", "instance": "number of the object"}
    extra = [*texts, *(name for name in points.dtype.names or () if name not in (FILE_DTYPE.names or ()))]
    for name in extra:
        header.add_extra_dim(laspy.ExtraBytesParams(name=name, type=points.dtype[name], description=texts.get(name, name)))
    header.scales = np.full(3, _LAS_UNIT_M)
    xyz = np.stack([points[axis] for axis in "xyz"], axis=1).astype(np.float64)
    if points.size and float(np.ptp(xyz, axis=0).max()) > _LAS_SPAN_M:
        raise ConfigError(f"{path}: extent of a LAS file must be at most {_LAS_SPAN_M:.0f} m, got {float(np.ptp(xyz, axis=0).max()):.0f}")
    header.offsets = np.floor(xyz.min(axis=0)) if points.size else np.zeros(3)
    header.global_encoding.gps_time_type = laspy.header.GpsTimeType.STANDARD
    file = laspy.LasData(header)
    file.x, file.y, file.z = xyz.T
    file.intensity = points["intensity"].astype(np.uint16)
    file.gps_time = adjusted_gps_s(points["time"])
    file.return_number = np.ones(points.size, np.uint8)
    file.number_of_returns = np.ones(points.size, np.uint8)
    for name in extra:
        file[name] = points[name]
    file.write(str(path))


WRITERS: dict[str, Callable[[Path, npt.NDArray[Any]], None]] = {
    ".pcd": write_pcd,
    ".ply": write_ply,
    ".npz": write_npz,
    ".csv": write_csv,
    ".las": write_las,
    ".laz": write_las,
}
"""Writers by the suffix of a file."""


def _joined(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Points one after the other, with the fields of all of them; 0 for fields that a point does not have."""
    fields = {name: part.dtype[name] for part in parts for name in part.dtype.names or ()}
    joined, begin = np.zeros(sum(part.size for part in parts), np.dtype([*fields.items()])), 0
    for part in parts:
        for name in part.dtype.names or ():
            joined[name][begin : begin + part.size] = part[name]
        begin += part.size
    return joined


class CloudFiles:
    """A file a scan in a folder: ``SENSOR/000000.pcd``; or all scans in one file, in the frame of the world where it is known."""

    def __init__(self, path: Path, suffix: str, *, in_one: bool) -> None:
        """Create no file yet.

        Args:
            path: Folder, or the file.
            suffix: Type of the files.
            in_one: Whether all scans go into the file ``path``.
        """
        self.files = 0
        self._path, self._suffix, self._in_one = path, suffix, in_one
        self._parts: list[npt.NDArray[Any]] = []

    def write(self, event: Event) -> None:
        """Write a scan, or hold it for the one file."""
        if not isinstance(event, OutputScan):
            return
        if self._in_one:
            self._parts.append(file_points(event, in_world=True))
            return
        folder = self._path / event.sensor
        folder.mkdir(parents=True, exist_ok=True)
        WRITERS[self._suffix](folder / f"{event.number:06d}{self._suffix}", file_points(event))
        self.files += 1

    def close(self) -> None:
        """Write the one file."""
        if self._in_one:
            WRITERS[self._suffix](self._path, _joined([np.zeros(0, WORLD_DTYPE), *self._parts]))
            self.files = 1
