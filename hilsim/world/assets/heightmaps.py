"""``<heightmap>`` of an SDF file as ground, with the heights and positions of Gazebo.

Read in the sources of gz-common (``ImageHeightmap.hh``, ``Image.cc``, ``Dem.cc``), gz-sim (``Physics.cc``), gz-physics (``CustomHeightmapShape.cc``), DART
(``BulletCollisionDetector.cpp``), Bullet (``btHeightfieldTerrainShape.cpp``) and gz-rendering (``Ogre2Heightmap.cc``, ``Terra.cpp``); decision 0040 names the versions:

- Of an image the first channel is used, as a share of the largest value of its format (255 or 65,535). The brightest pixel, by the sum of its channels, has the height of the size's z,
  and 0 has height 0. With a negative z heights are ``1 - h``.
- A DEM (GeoTIFF here) is extended to a square of 2^n + 1 heights: stretched without interpolation, and filled up in the east or south with its lowest height. That height is unchanged,
  and the highest is the size's z above it.
- The first row is in the north. ``<sampling>`` s puts s heights in place of one, interpolated linearly: (width - 1) s + 1 in a row.
- **Collisions**: the distance of heights is the size over their number (not over the number of cells), centred on the shape; ``<pos>`` is ignored. Cells are divided in
  zigzag.
- **Visuals**: the distance is the size over the number of cells, which must be a power of two, otherwise nothing is drawn; an image whose width is a power of two has its last row and column
  twice.
"""

import logging
import warnings
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import AssetError, library_reads
from hilsim.limits import TERRAIN_HEIGHTS
from hilsim.world.assets.mesh_parts import read_bytes
from hilsim.world.assets.rasters import check_size, read_raster
from hilsim.world.assets.terrain import surface
from hilsim.world.scene.materials import Material
from hilsim.world.scene.mesh import Mesh
from hilsim.world.sdf.specs import SdfShape

_IMAGES = (".png", ".jpg", ".jpeg")
SUFFIXES = (*_IMAGES, ".tif", ".tiff")
_FLAT = 1e-6
"""Heights that differ by no more count as equal."""
_UNDECLARED = -9999.0
"""Value for missing data of a DEM that declares none."""
_ROUNDING = 1e-10
_DEEP_COLOURS = ("RGB;16", "RGBA;16")
"""Pillow's names of the pixel formats of a PNG that it truncates to 8 bits; Gazebo does not read those with transparency either."""
_GREY = {"1": 255.0, "L": 255.0, "I;16": 65535.0, "I": 65535.0}

Grid = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Heights:
    """A square of heights before scaling.

    Attributes:
        values: ``float64[n, n]``, first row in the north; NaN where there is no data.
        lowest: Value that scales to itself: 0 for an image.
        highest: Value that is the given size above it.
        is_dem: Whether heights are metres already, not shares.
    """

    values: Grid
    lowest: float
    highest: float
    is_dem: bool = False


def heightmap_mesh(shape: SdfShape, material: Material, *, is_seen: bool) -> tuple[Mesh | None, str]:
    """Mesh of a heightmap in the shape's own frame, or None and the reason.

    Args:
        shape: Shape whose file exists and has one of ``SUFFIXES``.
        material: Material of the whole mesh.
        is_seen: Whether it is a visual, not a collision.

    Raises:
        AssetError: the file cannot be used; the message names it and the reason.
    """
    file = shape.file
    if file is None:
        raise AssertionError("a heightmap without a file must have been ignored or reported before")
    read = _read_image(file) if file.suffix.lower() in _IMAGES else _read_dem(file)
    width, samples = len(read.values), shape.sampling
    count = (width - 1) * samples + 1
    if is_seen and not _is_power_of_two(width - 1):
        count = width * samples
        if not _is_power_of_two(count):
            return None, f"Gazebo draws no heightmap of {width} heights a side with a sampling of {samples}: they must be 2^n or 2^n + 1"
    TERRAIN_HEIGHTS.enforce(count * count, str(file), AssetError, f"heights ({count} x {count}, of {width} with a sampling of {samples})")
    heights_m = _scaled(read, _sampled(read.values, samples, count), shape.size_m[2])
    if not is_seen:
        steps = (np.arange(count) - (count - 1) / 2.0) / count
    else:
        cells = count if _is_power_of_two(count) else count - 1
        heights_m = np.pad(heights_m, (0, cells + 1 - count), mode="edge")
        steps = np.arange(cells + 1) / cells - 0.5
    at_m = (steps * shape.size_m[0], -steps * shape.size_m[1])
    return surface(file, at_m, heights_m, np.zeros(heights_m.shape, np.bool_), material, is_zigzag=True), ""


def _sampled(values: Grid, samples: int, count: int) -> Grid:
    """``count`` heights a side, ``samples`` in place of each, linearly interpolated; beyond the last they are extrapolated."""
    at = np.arange(count) / samples
    before = np.floor(at).astype(np.int64)
    after = np.minimum(np.ceil(at).astype(np.int64), len(values) - 1)
    share = at - before
    across = values[:, before] + (values[:, after] - values[:, before]) * share
    return across[before] + (across[after] - across[before]) * share[:, np.newaxis]


def _scaled(read: Heights, values: Grid, height_m: float) -> Grid:
    span = read.highest - read.lowest
    scale = 1.0 if abs(span) <= _FLAT else abs(height_m) / span
    scaled = read.lowest + (values - read.lowest) * scale
    whole = np.where(np.isnan(scaled), read.lowest, scaled)
    if height_m < 0.0:
        return -whole if read.is_dem else 1.0 - whole
    return whole


def _read_image(path: Path) -> Heights:
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - only worlds with such a ground need it

    data = read_bytes(path)
    logging.getLogger("PIL").setLevel(logging.CRITICAL)  # Pillow reports a damaged file by an exception as well
    with warnings.catch_warnings(), library_reads(f"{path}: cannot be decoded", AssetError, Image.DecompressionBombError):
        warnings.simplefilter("ignore")  # Pillow warns of large images and odd metadata; the size is checked here, before decoding
        try:
            image = Image.open(BytesIO(data), formats=("PNG", "JPEG"))
        except UnidentifiedImageError as error:
            raise AssetError(f"{path}: must be a PNG or JPEG image, got something Pillow cannot identify") from error
        with image:
            check_size(path, image.size[::-1])
            return _shares(path, image)


def _shares(path: Path, image: Any) -> Heights:
    """First channel of an image as shares of the largest value of its format."""
    columns, rows = image.size
    if columns != rows:
        raise AssetError(f"{path}: an image of heights must be square, got {columns} x {rows}")
    mode, is_masked = image.mode, "transparency" in image.info
    if any(str(tile[3]).startswith(_DEEP_COLOURS) for tile in image.tile):
        raise AssetError(f"{path}: an image of heights must have 8 bits a channel, or 16 bits grey, got 16 bits in colour")
    if mode == "P":
        mode = "RGBA" if is_masked else "RGB"
    if mode not in {"RGB", "RGBA"} and (mode not in _GREY or is_masked):
        raise AssetError(f"{path}: an image of heights must be grey (without transparency), RGB or RGBA, got mode {image.mode}")
    if mode in {"RGB", "RGBA"}:
        pixels = np.asarray(image.convert(mode), dtype=np.float64)[:, :, :3] / 255.0
        values = pixels[:, :, 0]
        brightness = pixels.sum(axis=2)[::-1].reshape(-1)  # the first of equal values is searched from the south
        highest = float(values[::-1].reshape(-1)[int(np.argmax(brightness))])
    else:
        values = np.asarray(image.convert("L") if mode == "1" else image, dtype=np.float64) / _GREY[mode]
        highest = float(values.max())
    return Heights(values=values, lowest=0.0, highest=highest)


def _read_dem(path: Path) -> Heights:
    raster = read_raster(path, is_placed=False)
    missing = raster.missing if raster.missing.any() else raster.values == _UNDECLARED
    if missing.all():
        raise AssetError(f"{path}: must have a height, got none without missing data")
    rows, columns = raster.values.shape
    side = max(_side(rows), _side(columns))
    wide, deep = _stretched(rows, columns, side)
    lowest, highest = float(raster.values[~missing].min()), float(raster.values[~missing].max())
    values = np.full((side, side), lowest)
    rows_of, columns_of = _nearest(rows, deep), _nearest(columns, wide)
    values[:deep, :wide] = np.where(missing, np.nan, raster.values)[rows_of[:, np.newaxis], columns_of]
    return Heights(values=values, lowest=lowest, highest=highest, is_dem=True)


def _side(count: int) -> int:
    """Smallest 2^n + 1 that is at least the count."""
    return count if _is_power_of_two(count - 1) else 2 ** (count - 1).bit_length() + 1


def _stretched(rows: int, columns: int, side: int) -> tuple[int, int]:
    """Columns and rows of a raster in the square, truncated like 32-bit integers."""
    ratio = np.float32(max(rows, columns)) / np.float32(min(rows, columns))
    shorter = int(np.float32(side) / ratio)
    return (side, shorter) if columns > rows else (shorter, side)


def _nearest(count: int, requested: int) -> npt.NDArray[np.int64]:
    """Index among ``count`` for each of ``requested``, as in GDAL."""
    chosen: npt.NDArray[np.int64] = np.floor((np.arange(requested) + 0.5) * (count / requested) + _ROUNDING).astype(np.int64)
    return np.minimum(chosen, count - 1)


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
