"""Height maps: 16-bit grey PNG and GeoTIFF (16-bit or float32), through Pillow, as a grid of triangles.

GeoTIFF 1.0 tags (Ritter and Ruth 2000): 33550 pixel scale, 33922 tie point, 34735 keys; 42113 is GDAL's value for "no data", which leaves
holes. Only maps in metres are accepted; degrees are rejected, because hilsim does not project coordinates.
"""

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hilsim.assets.extent import check_extent
from hilsim.assets.libtiff import silence_libtiff
from hilsim.assets.mesh_parts import read_bytes
from hilsim.errors import AssetError, library_reads
from hilsim.limits import TERRAIN_HEIGHTS
from hilsim.scene.materials import Material
from hilsim.scene.mesh import Mesh
from hilsim.scene.object_specs import TerrainSpec

T = TypeVar("T")

_PNG, _TIFF = "PNG", "TIFF"
_MODEL_PIXEL_SCALE, _MODEL_TIEPOINT, _MODEL_TRANSFORMATION, _GEO_KEYS, _GDAL_NODATA = 33550, 33922, 34264, 34735, 42113
_MODEL_TYPE_KEY, _RASTER_TYPE_KEY, _LINEAR_UNITS_KEY, _VERTICAL_UNITS_KEY = 1024, 1025, 3076, 4099
_PHOTOMETRIC = 262
_PROJECTED, _PIXEL_IS_POINT, _METRE = 1, 2, 9001
_MODEL_NAMES = {2: "geographic (degrees)", 3: "geocentric"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Raster:
    """A height map as stored in the file.

    Attributes:
        values: ``float64[rows, columns]``, first row in the north.
        missing: ``bool[rows, columns]``, true for missing data.
        limits: Smallest and largest value of the format; None for floating point.
        tags: Tags of a TIFF, by number.
    """

    values: npt.NDArray[np.float64]
    missing: npt.NDArray[np.bool_]
    limits: tuple[float, float] | None
    tags: dict[int, Any]


class _Place(NamedTuple):
    """Georeference of a height map.

    Attributes:
        pixel_m: Pixel size east-west and north-south; None if the file does not contain it.
        north_west_m: Position of the first height in the map's own coordinates; None if the file does not contain it.
        notes: Notes for the user.
    """

    pixel_m: tuple[float, float] | None = None
    north_west_m: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()


def load_terrain(spec: TerrainSpec, directory: Path, materials: dict[str, Material]) -> tuple[Mesh, tuple[str, ...]]:
    """Terrain as a mesh with its origin at the south-west height (or the map's own origin, when georeferenced), and notes.

    Args:
        spec: Table of the rig.
        directory: Directory that the file's path is relative to.
        materials: All materials of the rig by name.

    Raises:
        AssetError: the file cannot be used; the message names it and the reason.
    """
    path = directory / spec.file
    raster = read_raster(path)
    place = _georeference(path, raster.tags)
    rows, columns = raster.values.shape
    east_m, north_m = _spacing(spec, raster, place, path)
    x = np.arange(columns, dtype=np.float64) * east_m
    y = np.arange(rows - 1, -1, -1) * north_m
    if spec.georeferenced:
        if place.north_west_m is None:
            raise AssetError(f"{path}: georeferenced terrain must be a GeoTIFF with pixel scale (33550) and tie point (33922), got none")
        x, y = x + place.north_west_m[0], y + place.north_west_m[1] - (rows - 1) * north_m
    missing = int(raster.missing.sum())
    holes = (f"{path}: {missing} of {raster.missing.size} heights are missing and leave holes",) if missing else ()
    mesh = surface(path, (x, y), _heights(spec, raster, path), raster.missing, materials[spec.material])
    return mesh, (*place.notes, *holes)


def surface(
    path: Path,
    at_m: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    heights_m: npt.NDArray[np.float64],
    missing: npt.NDArray[np.bool_],
    material: Material,
    *,
    is_zigzag: bool = False,
) -> Mesh:
    """Ground through a grid of heights, two triangles per cell.

    Args:
        path: Path of the file, for messages.
        at_m: x of the columns and y of the rows, the first row in the north.
        heights_m: ``float64[rows, columns]``.
        missing: ``bool[rows, columns]``; triangles at these are omitted.
        material: Material of the whole mesh.
        is_zigzag: Whether cells are divided from south-west to north-east and, in every other row from the south, from north-west to south-east; else all the first way.

    Raises:
        AssetError: a height is too far from the others, or there is no triangle.
    """
    rows, columns = heights_m.shape
    x, y = at_m
    vertices = np.stack([np.broadcast_to(x, (rows, columns)), np.broadcast_to(y[:, np.newaxis], (rows, columns)), heights_m], axis=-1).reshape(-1, 3)
    triangles = _grid(missing, is_zigzag=is_zigzag)
    if len(triangles) == 0:
        raise AssetError(f"{path}: must have at least one triangle of heights, got none without missing data")
    check_extent(
        path,
        vertices,
        triangles,
        lambda row: f"the height in row {row // columns}, column {row % columns}",
        doubt="a value for missing data that the file does not declare (42113)?",
    )
    try:
        return Mesh.uniform(vertices, triangles, material)
    except ValueError as error:
        raise AssetError(f"{path}: {error}") from error


def _spacing(spec: TerrainSpec, raster: Raster, place: _Place, path: Path) -> tuple[float, float]:
    rows, columns = raster.values.shape
    if spec.size_m is not None:
        return spec.size_m[0] / (columns - 1), spec.size_m[1] / (rows - 1)
    if spec.pixel_m is not None:
        return spec.pixel_m, spec.pixel_m
    if place.pixel_m is None:
        raise AssetError(f"{path}: terrain must have size_m or pixel_m in the rig, because the file does not give its size")
    return place.pixel_m


def _heights(spec: TerrainSpec, raster: Raster, path: Path) -> npt.NDArray[np.float64]:
    values = np.where(raster.missing, 0.0, raster.values)
    if spec.height_min_m is not None and spec.height_max_m is not None:
        if raster.limits is None:
            raise AssetError(f"{path}: height_min_m and height_max_m must go with 16-bit integers, got floating point; use scale_m")
        low, high = raster.limits
        return spec.height_min_m + (values - low) * ((spec.height_max_m - spec.height_min_m) / (high - low))
    if spec.scale_m is not None:
        return values * spec.scale_m + (spec.offset_m or 0.0)
    if path.suffix.lower() == ".png":
        raise AssetError(f"{path}: terrain from a PNG must have height_min_m and height_max_m or scale_m in the rig")
    return values


def _grid(missing: npt.NDArray[np.bool_], *, is_zigzag: bool = False) -> npt.NDArray[np.int32]:
    """Triangles of a grid, two per cell, facing up; none at a missing height."""
    rows, columns = missing.shape
    corner = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    nw, ne, sw, se = corner[:-1, :-1], corner[:-1, 1:], corner[1:, :-1], corner[1:, 1:]
    cells = np.stack([np.stack([sw, se, ne], axis=-1), np.stack([sw, ne, nw], axis=-1)], axis=-2)
    if is_zigzag:
        other = np.stack([np.stack([sw, se, nw], axis=-1), np.stack([se, ne, nw], axis=-1)], axis=-2)
        cells[-2::-2] = other[-2::-2]
    triangles = cells.reshape(-1, 3)
    if not missing.any():
        return triangles
    whole: npt.NDArray[np.int32] = triangles[~missing.reshape(-1)[triangles].any(axis=1)]
    return whole


def read_raster(path: Path) -> Raster:
    """Heights of a 16-bit PNG or a GeoTIFF, as stored in the file.

    Raises:
        AssetError: the file cannot be used; the message names it and the reason.
    """
    if path.suffix.lower() not in (".png", ".tif", ".tiff"):
        raise AssetError(f'{path}: terrain must be a .png, .tif or .tiff, got "{path.suffix}"')
    return with_image(path, (_PNG, _TIFF), "a PNG or TIFF with one 16-bit or float32 band", _decode)


def with_image(path: Path, formats: tuple[str, ...], required: str, decode: Callable[[Path, Any], T]) -> T:
    """Open an image and return the result of a function, which decodes it.

    Args:
        path: Path of the file.
        formats: Permitted formats by Pillow's names.
        required: Description of the required format, for messages.
        decode: Called with the path and the image.

    Raises:
        AssetError: the file is not such an image, has too many pixels, or is damaged.
    """
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - only rigs with terrain need it

    data = read_bytes(path)
    silence_libtiff()
    logging.getLogger("PIL").setLevel(logging.CRITICAL)  # Pillow reports a damaged file by an exception as well
    with warnings.catch_warnings(), library_reads(f"{path}: cannot be decoded", AssetError, Image.DecompressionBombError):
        warnings.simplefilter("ignore")  # Pillow warns of large images and odd metadata; the size is checked here, before decoding
        try:
            image = Image.open(BytesIO(data), formats=formats)
        except UnidentifiedImageError as error:
            raise AssetError(f"{path}: must be {required}, got something Pillow cannot identify") from error
        with image:
            _check_size(path, image.size)
            return decode(path, image)


def _check_size(path: Path, size: tuple[int, int]) -> None:
    columns, rows = size
    if min(size) < 2:
        raise AssetError(f"{path}: must be at least 2 x 2 heights, got {columns} x {rows}")
    TERRAIN_HEIGHTS.enforce(columns * rows, str(path), AssetError, f"heights ({columns} x {rows})")


def _decode(path: Path, image: Any) -> Raster:
    tags = dict(getattr(image, "tag_v2", {})) if image.format == _TIFF else {}
    if image.format == _TIFF and _PHOTOMETRIC not in tags:
        raise AssetError(f"{path}: a TIFF must define the meaning of its values (tag 262), got none")
    signed_16 = image.format == _TIFF and image.mode == "I" and _first(tags.get(258)) == 16
    if image.mode.startswith("I;16") or (image.format == _PNG and image.mode == "I"):  # Pillow 11 still reads 16-bit PNG as 32-bit
        limits: tuple[float, float] | None = (0.0, 65535.0)
    elif signed_16:
        limits = (-32768.0, 32767.0)
    elif image.mode == "F":
        limits = None
    else:
        raise AssetError(f"{path}: must have one band of 16-bit integers or float32, got mode {image.mode} ({_bits(image.mode)}); convert it")
    image.load()
    values = np.array(image, dtype=np.float64)
    return Raster(values=values, missing=_missing(path, values, tags), limits=limits, tags=tags)


def _bits(mode: str) -> str:
    return {"L": "8 bits: 256 steps", "P": "a palette", "1": "1 bit", "I": "32 bits"}.get(mode, f"{len(mode)} bands")


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) else value


def _missing(path: Path, values: npt.NDArray[np.float64], tags: dict[int, Any]) -> npt.NDArray[np.bool_]:
    missing = np.zeros(values.shape, dtype=np.bool_)
    text = str(tags.get(_GDAL_NODATA, "")).strip("\0 ")
    if text:
        try:
            marker = float(text)
        except ValueError:
            raise AssetError(f"{path}: the no-data value (42113) must be a number, got {text!r}") from None
        missing = np.isnan(values) if np.isnan(marker) else values == marker
        with np.errstate(over="ignore"):
            missing |= values == float(np.float32(marker))
    bad = np.argwhere(~np.isfinite(values) & ~missing)
    if len(bad):
        row, column = bad[0]
        raise AssetError(f"{path}: heights must be finite or marked as missing (42113), got {values[row, column]} in row {row}, column {column}")
    return missing


def _georeference(path: Path, tags: dict[int, Any]) -> _Place:
    keys = _geo_keys(path, tags)
    scale, tie = (_numbers(path, tags, tag, name) for tag, name in ((_MODEL_PIXEL_SCALE, "pixel scale"), (_MODEL_TIEPOINT, "tie point")))
    model, units = keys.get(_MODEL_TYPE_KEY), [keys.get(_LINEAR_UNITS_KEY, _METRE), keys.get(_VERTICAL_UNITS_KEY, _METRE)]
    if model in _MODEL_NAMES:
        raise AssetError(
            f"{path}: must be in a projected coordinate system in metres, got a {_MODEL_NAMES[model]} one; re-project it (gdalwarp -t_srs)"
        )
    if any(unit != _METRE for unit in units):
        raise AssetError(f"{path}: must be in metres (unit code 9001), got unit codes {units[0]} across and {units[1]} up")
    if _MODEL_TRANSFORMATION in tags:
        raise AssetError(f"{path}: must be north up with a pixel scale, got a transformation matrix (34264); re-project it")
    if not scale:
        return _Place()
    if len(scale) < 2 or min(scale[:2]) <= 0.0:
        raise AssetError(f"{path}: the pixel scale (33550) must be above 0, got {scale}")
    east_m, north_m = float(scale[0]), float(scale[1])
    notes = () if model == _PROJECTED else (f"{path}: no coordinate system is given; its pixel size is taken as metres",)
    if not tie:
        return _Place((east_m, north_m), notes=notes)
    if len(tie) < 6:
        raise AssetError(f"{path}: the tie point (33922) must be six numbers, got {tie}")
    half = 0.0 if keys.get(_RASTER_TYPE_KEY) == _PIXEL_IS_POINT else 0.5  # the height of an area is that of its centre
    north_west_m = (float(tie[3]) + (half - float(tie[0])) * east_m, float(tie[4]) - (half - float(tie[1])) * north_m)
    return _Place((east_m, north_m), north_west_m, notes)


def _numbers(path: Path, tags: dict[int, Any], tag: int, name: str) -> tuple[float, ...]:
    """Values of a tag, which Pillow gives as one value, as several, or as text; empty without the tag."""
    found = tags.get(tag, ())
    try:
        numbers = tuple(float(value) for value in (found if isinstance(found, tuple) else (found,)))
    except (TypeError, ValueError, ArithmeticError):
        numbers = (np.nan,)
    if not np.isfinite(numbers).all():
        raise AssetError(f"{path}: the {name} ({tag}) must be finite numbers, got {str(found)[:60]}")
    return numbers


def _geo_keys(path: Path, tags: dict[int, Any]) -> dict[int, int]:
    """Short keys of the directory: rows of (key, place, count, value); place 0 means that the row contains the value."""
    directory = [int(value) for value in _numbers(path, tags, _GEO_KEYS, "GeoTIFF key directory")]
    if not directory:
        return {}
    if len(directory) < 4 or len(directory) < 4 * (directory[3] + 1):
        raise AssetError(
            f"{path}: the GeoTIFF key directory (34735) must have {4 * (directory[3] + 1) if len(directory) > 3 else 4} values, got {len(directory)}"
        )
    rows = (directory[4 * row : 4 * row + 4] for row in range(1, directory[3] + 1))
    return {key: value for key, place, _, value in rows if place == 0}
