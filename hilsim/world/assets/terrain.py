"""Height maps (PNG, GeoTIFF) as a grid of triangles; missing data leave holes.

Only maps in metres on the ground are accepted; degrees, feet and Mercator's metres are rejected, because hilsim does not project coordinates.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilsim.errors import AssetError
from hilsim.world.assets.extent import check_extent
from hilsim.world.assets.rasters import Raster, read_raster, undeclared
from hilsim.world.scene.materials import Material
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.object_specs import TerrainSpec

_SHOWN_VALUES = 3
_FINEST_M = 0.01
"""Smallest pixel that a file may give: finer ones are degrees without a coordinate system."""


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
    rows, columns = raster.values.shape
    east_m, north_m = _spacing(spec, raster, path)
    x = np.arange(columns, dtype=np.float64) * east_m
    y = np.arange(rows - 1, -1, -1) * north_m
    if spec.georeferenced:
        if raster.north_west_m is None:
            raise AssetError(f"{path}: georeferenced terrain must be a GeoTIFF with pixel scale (33550) and tie point (33922), got none")
        x, y = x + raster.north_west_m[0], y + raster.north_west_m[1] - (rows - 1) * north_m
    missing, notes = raster.missing, list(raster.notes)
    if missing.any():
        notes.append(f"{path}: {int(missing.sum())} of {missing.size} heights are missing and leave holes")
    heights_m = _heights(spec, raster, path)
    odd = undeclared(raster.values, heights_m, missing) if spec.height_min_m is None else np.zeros_like(missing)
    if odd.any():
        known = ", ".join(f"{value:g}" for value in np.unique(raster.values[odd])[:_SHOWN_VALUES])
        notes.append(f"{path}: {int(odd.sum())} of {odd.size} heights ({known}) are far from all others: taken as missing, they leave holes")
    mesh = surface(path, (x, y), np.where(odd, 0.0, heights_m), missing | odd, materials[spec.material])
    return mesh, tuple(notes)


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


def _spacing(spec: TerrainSpec, raster: Raster, path: Path) -> tuple[float, float]:
    rows, columns = raster.values.shape
    if spec.size_m is not None:
        return spec.size_m[0] / (columns - 1), spec.size_m[1] / (rows - 1)
    if spec.pixel_m is not None:
        return spec.pixel_m, spec.pixel_m
    if raster.pixel_m is None:
        raise AssetError(f"{path}: terrain must have size_m or pixel_m in the rig, because the file does not give its size")
    if min(raster.pixel_m) < _FINEST_M:
        raise AssetError(
            f"{path}: a pixel must be at least {_FINEST_M} m, got {min(raster.pixel_m):g}: degrees? re-project it, or give size_m in the rig"
        )
    return raster.pixel_m


def _heights(spec: TerrainSpec, raster: Raster, path: Path) -> npt.NDArray[np.float64]:
    values = np.where(raster.missing, 0.0, raster.values)
    if spec.height_min_m is not None and spec.height_max_m is not None:
        if raster.limits is None:
            raise AssetError(f"{path}: height_min_m and height_max_m must go with integers, got floating point; use scale_m")
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
