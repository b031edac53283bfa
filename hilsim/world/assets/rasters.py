"""Height maps as GDAL reads them (through rasterio): PNG and TIFF of any byte order, compression and width of numbers, with their georeference."""

import ctypes
import logging
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import AssetError, library_reads
from hilsim.limits import EXTENT_M, TERRAIN_HEIGHTS
from hilsim.world.assets.mesh_parts import read_bytes
from hilsim.world.geometry.geodesy import geodetic

_TYPES = ("int16", "uint16", "int32", "uint32", "float32", "float64")
_MARKERS = (-9999.0, -999.0)
"""Usual values for missing data that may lie within the heights of the Earth's surface."""
_HIGHEST_M, _FAR_M = 9000.0, 500.0
_DISTORTION = 0.02
"""Largest difference of a metre of the map from a metre on the ground; maps of countries have up to 0.004."""
_METRES, _ROUNDING = frozenset({"m", "metre", "meter", "metres", "meters"}), 1e-9
_BYTES = ("uint8", "8 bits: 256 steps")
_PNG = b"\x89PNG"
_GEO_KEYS, _NO_DATA, _MAX_TAGS = 34735, 42113, 4096
_MODEL_TYPE_KEY, _LINEAR_UNITS_KEY, _VERTICAL_UNITS_KEY = 1024, 3076, 4099
_METRE, _USER_DEFINED = 9001, 32767
_MODEL_NAMES = {2: "geographic (degrees)", 3: "geocentric"}
_MAPS = Path("/proc/self/maps")


@dataclass(frozen=True, kw_only=True, eq=False)
class Raster:
    """A height map.

    Attributes:
        values: ``float64[rows, columns]``, first row in the north.
        missing: ``bool[rows, columns]``, true for missing data.
        limits: Smallest and largest value of the format; None for floating point.
        pixel_m: Pixel size east-west and north-south; None if the file does not contain it.
        north_west_m: Position of the first height in the map's own coordinates; None if the file does not contain it.
        notes: Notes for the user.
    """

    values: npt.NDArray[np.float64]
    missing: npt.NDArray[np.bool_]
    limits: tuple[float, float] | None
    pixel_m: tuple[float, float] | None
    north_west_m: tuple[float, float] | None
    notes: tuple[str, ...]


def read_raster(path: Path, *, is_placed: bool = True) -> Raster:
    """Heights of a PNG or TIFF, as stored in the file.

    Args:
        path: The file.
        is_placed: Whether to read its georeference as well.

    Raises:
        AssetError: the file cannot be used; the message names it and the reason.
    """
    if path.suffix.lower() not in (".png", ".tif", ".tiff"):
        raise AssetError(f'{path}: terrain must be a .png, .tif or .tiff, got "{path.suffix}"')
    data = read_bytes(path)
    driver = "PNG" if data.startswith(_PNG) else "GTiff"
    try:
        import rasterio  # noqa: PLC0415 - an extra
        from rasterio._err import CPLE_BaseError  # noqa: PLC0415 - as above; no public name
    except ModuleNotFoundError as error:
        raise AssetError(f"{path}: height maps require the package rasterio (pip install 'hilsim-lidar[terrain]')") from error
    except ImportError as error:  # its wheels have all libraries but one
        raise AssetError(f"{path}: GDAL cannot be loaded: {error} (apt install libexpat1)") from error

    silence_libtiff()
    logging.getLogger("rasterio").setLevel(logging.CRITICAL)  # a damaged file is reported by an exception as well
    with warnings.catch_warnings(), library_reads(f"{path}: cannot be decoded", AssetError), _causes(rasterio.errors.RasterioError, CPLE_BaseError):
        warnings.simplefilter("ignore")  # a map without a georeference is noted here
        tags = _tags(data) if driver == "GTiff" else {}
        _check_missing(path, tags)
        with rasterio.Env(GTIFF_REPORT_COMPD_CS="YES"), rasterio.open(path.resolve(), driver=driver) as file:
            check_size(path, file.shape)
            kind = file.dtypes[0]
            if kind not in _TYPES or file.colorinterp[0] not in {rasterio.enums.ColorInterp.gray, rasterio.enums.ColorInterp.undefined}:
                raise AssetError(
                    f"{path}: must have a band of heights in 16 or 32-bit integers, float32 or float64, got {kind.replace(*_BYTES)} ({file.colorinterp[0].name}); convert it"
                )
            scale, offset = file.scales[0], file.offsets[0]
            values = file.read(1).astype(np.float64) * scale + offset
            missing = np.isnan(values) | (file.read_masks(1) == 0)
            if is_placed:
                _check_keys(path, tags)
            pixel_m, north_west_m, notes = _place(path, file) if is_placed else (None, None, ())
    bad = np.argwhere(~np.isfinite(values) & ~missing)
    if len(bad):
        row, column = bad[0]
        raise AssetError(f"{path}: heights must be finite or marked as missing (42113), got {values[row, column]} in row {row}, column {column}")
    limits = None if kind.startswith("float") else (float(np.iinfo(kind).min * scale + offset), float(np.iinfo(kind).max * scale + offset))
    return Raster(values=values, missing=missing, limits=limits, pixel_m=pixel_m, north_west_m=north_west_m, notes=notes)


@contextmanager
def _causes(*kinds: type[Exception]) -> Iterator[None]:
    """Report the cause of an error of rasterio, which is GDAL's sentence."""
    try:
        yield
    except kinds as error:
        raise OSError(str(error.__cause__ or error)) from error


def _tags(data: bytes) -> dict[int, bytes]:
    """Geographic keys and no-data value as the file declares them, keys in this machine's byte order: GDAL passes over some that it cannot use."""
    order, is_big = ("<" if data[:2] == b"II" else ">"), data[2:4] in {b"+\0", b"\0+"}
    head, entry = (("Q", "QQ8s") if is_big else ("I", "HI4s")), struct.Struct(order + ("HHQ8s" if is_big else "HHI4s"))
    (at,) = struct.unpack_from(order + head[0], data, 8 if is_big else 4)
    first = struct.Struct(order + ("Q" if is_big else "H"))
    found = {}
    for row in range(min(first.unpack_from(data, at)[0], _MAX_TAGS)):
        tag, _, count, held = entry.unpack_from(data, at + first.size + row * entry.size)
        size = {_GEO_KEYS: 2 * count, _NO_DATA: count}.get(tag)
        if size is not None:
            start = struct.unpack(order + head[0], held)[0]
            found[tag] = held[:size] if size <= len(held) else data[start : start + size]
    if _GEO_KEYS in found:
        found[_GEO_KEYS] = np.frombuffer(found[_GEO_KEYS], order + "u2").astype("u2").tobytes()
    return found


def _check_missing(path: Path, tags: dict[int, bytes]) -> None:
    text = tags.get(_NO_DATA, b"").decode("latin-1").strip("\0 ")
    try:
        float(text or "0")
    except ValueError:
        raise AssetError(f"{path}: the no-data value (42113) must be a number, got {text!r}") from None


def _check_keys(path: Path, tags: dict[int, bytes]) -> None:
    """Reject units that the file declares: rows of (key, place, count, value); place 0 means that the row contains the value."""
    directory = np.frombuffer(tags.get(_GEO_KEYS, b""), "u2").tolist()
    if directory and len(directory) < (expected := 4 * (directory[3] + 1) if len(directory) > 3 else 4):
        raise AssetError(f"{path}: the GeoTIFF key directory (34735) must have {expected} values, got {len(directory)}")
    keys = {key: value for key, place, _, value in np.reshape(directory[: len(directory) // 4 * 4], (-1, 4)).tolist()[1:] if place == 0}
    if keys.get(_MODEL_TYPE_KEY) in _MODEL_NAMES:
        raise AssetError(
            f"{path}: must be in a projected coordinate system in metres, got a {_MODEL_NAMES[keys[_MODEL_TYPE_KEY]]} one; re-project it (gdalwarp -t_srs)"
        )
    units = [keys.get(key, _METRE) for key in (_LINEAR_UNITS_KEY, _VERTICAL_UNITS_KEY)]
    if any(unit not in {_METRE, _USER_DEFINED} for unit in units):
        raise AssetError(
            f"{path}: must be in metres (unit code 9001), got unit codes {units[0]} across and {units[1]} up; re-project it (gdalwarp -t_srs)"
        )


def check_size(path: Path, shape: tuple[int, int]) -> None:
    """Reject a map of one row or column, or of too many heights."""
    rows, columns = shape
    if min(shape) < 2:
        raise AssetError(f"{path}: must be at least 2 x 2 heights, got {columns} x {rows}")
    TERRAIN_HEIGHTS.enforce(columns * rows, str(path), AssetError, f"heights ({columns} x {rows})")


def undeclared(values: npt.NDArray[np.float64], heights_m: npt.NDArray[np.float64], missing: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Heights ``bool[rows, columns]`` that mean missing data although the file does not say so: usual values, or heights of no place on Earth, far from all others.

    Those beyond the limit of distances are left to the check of that limit, which rejects them.

    Args:
        values: Values as stored in the file.
        heights_m: The same in metres.
        missing: Declared missing data.
    """
    found, is_near = np.zeros_like(missing), np.abs(heights_m) < EXTENT_M.bound
    for at in ((heights_m < -_HIGHEST_M) & is_near, (heights_m > _HIGHEST_M) & is_near, *(values == marker for marker in _MARKERS)):
        if not at.any():
            continue
        here, others = heights_m[at & ~missing], heights_m[~at & ~missing]
        if len(here) and len(others) and (here.max() < others.min() - _FAR_M or here.min() > others.max() + _FAR_M):
            found |= at
    return found & ~missing


def _place(path: Path, file: Any) -> tuple[tuple[float, float] | None, tuple[float, float] | None, tuple[str, ...]]:
    """Pixel size, place of the first height, and notes."""
    notes: tuple[str, ...] = (f"{path}: has {file.count} bands; the first is used",) if file.count > 1 else ()
    at = file.transform
    if file.crs is not None:
        _check_crs(path, file)
    if at.is_identity:
        return None, None, notes
    if at.b or at.d or at.a <= 0.0 or at.e >= 0.0:
        raise AssetError(
            f"{path}: must be north up with a pixel size above 0, got the matrix {at.a:g} {at.b:g} {at.d:g} {at.e:g}; re-project it (gdalwarp)"
        )
    if file.crs is None:
        notes += (f"{path}: no coordinate system is given; its pixel size is taken as metres",)
    north_west_m = at * (0.5, 0.5) if at.c or at.f else None  # the height of a pixel is that of its centre; (0, 0) stands for no tie point
    return (at.a, -at.e), north_west_m, notes


def _check_crs(path: Path, file: Any) -> None:
    """Reject a map that is not in metres on the ground, across and up."""
    from rasterio.warp import transform  # noqa: PLC0415 - an extra

    crs, at = file.crs, file.transform
    across, metres = crs.units_factor
    up = file.units[0] or "metre"
    if abs(metres - 1.0) > _ROUNDING or up.lower() not in _METRES:
        raise AssetError(f"{path}: must be in metres, got {across} across and {up} up; re-project it (gdalwarp -t_srs)")
    if not crs.is_projected or at.is_identity:
        return
    x, y = at * (0.5 * file.width, 0.5 * file.height)
    longitude, latitude = transform(crs, "EPSG:4326", [x, x + at.a, x], [y, y, y - at.e])
    north_deg, east_deg = geodetic(latitude[0], longitude[0], 1.0, 1.0)
    one_m = np.array([north_deg - latitude[0], east_deg - longitude[0]])
    steps_deg = np.stack([latitude, longitude], axis=-1)[1:] - (latitude[0], longitude[0])
    ratios = np.linalg.norm(steps_deg / one_m, axis=1) / (at.a, -at.e)
    if not (np.abs(ratios - 1.0) <= _DISTORTION).all():
        utm = (32600 if latitude[0] >= 0.0 else 32700) + int((longitude[0] + 180.0) // 6.0) % 60 + 1
        raise AssetError(
            f"{path}: a metre of the map must be one on the ground, got {ratios[0]:.3f} m east-west and {ratios[1]:.3f} m north-south in {crs.to_string()[:60]}; "
            f"re-project it (gdalwarp -t_srs EPSG:{utm})"
        )


@cache
def silence_libtiff() -> None:
    """Remove libtiff's handlers of errors and warnings, in the libraries that are loaded; no effect without one.

    hilsim reports each fault of a file once, and GDAL still reports a file that cannot be decoded by an exception. Call it after ``rasterio`` was imported.
    """
    try:
        mapped = _MAPS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for name in {line.split(maxsplit=5)[-1] for line in mapped if "libtiff" in line}:
        try:
            library = ctypes.CDLL(name)
            library.TIFFSetErrorHandler(None)
            library.TIFFSetWarningHandler(None)
        except (OSError, AttributeError):
            continue
