"""Static triangles that the rays of each cell can hit: the input of ``render.cells``, computed once for a stationary sensor.

The reach of a list is estimated by casting a few rays of the cell; a reach that is too short costs only time (rays then traverse the trees). Hits
depend on the completeness
of a list up to its reach, which ``render.bundles`` guarantees.
"""

import math

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.geometry.frames import Quaternion
from hilsim.geometry.rotations import matrix_from_quaternion
from hilsim.render.bundles import gather
from hilsim.render.cast import RAY_STACK_SIZE
from hilsim.render.cells import NO_CELLS, Cells, frozen
from hilsim.render.packets import NO_COSINE, cast_packets, packets_of
from hilsim.scene.materials import Optic
from hilsim.scene.tiles import LATTICE_PER_M
from hilsim.scene.world import World

_ORIGIN_M = 1.01 * 0.5 * math.sqrt(3.0) / LATTICE_PER_M + 1e-9  # largest displacement of an origin by rounding to the lattice
_ANGLE_RAD = 5e-7  # rounding of a direction to float32, here and in the choice of the cell
_RIM = 6
_SURFACES = 4  # number of transmitting surfaces in a row that the search for the opaque one passes
_STEP_M = 1e-3
_REACH_MARGIN_M = 0.05
_REACH_MARGIN_RATIO = 0.002
_CHUNK = 4096  # cells whose lists are gathered at once: bounds the memory and the duration of a call


@kernel
def _gather_cells(
    world: World,
    origin_m: npt.NDArray[np.float64],
    axis: npt.NDArray[np.float64],
    group: npt.NDArray[np.int32],
    angle_rad: npt.NDArray[np.float64],
    width_m: float,
    sampled_m: npt.NDArray[np.float64],
    max_range_m: float,
    most: int,
    count: npt.NDArray[np.int32],
    reach_m: npt.NDArray[np.float32],
    entries: npt.NDArray[np.int32],
) -> int:
    """Gather the lists of some cells, one after another; returns the number of entries.

    Args:
        sampled_m: ``float64[n, k]``, decreasing ranges of some rays of each cell. A list that would be too long is shortened to the next of them
            instead; if that serves less than half of the rays there is no list.
        count: ``int32[n]``, output, number of entries of a cell.
        reach_m: ``float32[n]``, output, reach of a cell's list.
        entries: ``int32[n * most, 3]``, output.
    """
    stack = np.empty(RAY_STACK_SIZE, dtype=np.int32)
    total = 0
    for cell in range(count.shape[0]):
        count[cell] = 0
        reach_m[cell] = 0.0
        for sample in range((sampled_m.shape[1] + 1) // 2):
            reach = sampled_m[cell, sample] * (1.0 + _REACH_MARGIN_RATIO) + _REACH_MARGIN_M
            found = gather(world, origin_m[group[cell]], axis[cell], angle_rad[cell], width_m, min(reach, max_range_m), stack, entries, total, most)
            if found >= 0:
                count[cell] = found
                total += found
                reach_m[cell] = reach if reach < max_range_m else np.inf
                break
    return total


def _sampled_ranges(
    world: World, origin_m: npt.NDArray[np.float64], axis: npt.NDArray[np.float64], angle_rad: npt.NDArray[np.float64], max_range_m: float
) -> npt.NDArray[np.float64]:
    """Decreasing ranges ``float64[n, 1 + _RIM]`` to opaque surfaces, along each cell's axis and its rim; infinity for a miss."""
    helper = np.eye(3)[np.argmin(np.abs(axis), axis=1)]
    across = np.cross(axis, helper)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    tilt = np.minimum(angle_rad, 1.5)[:, np.newaxis]
    ahead, across = np.cos(tilt) * axis, np.sin(tilt) * across
    up = np.cross(across, axis)
    rays = np.empty((len(axis), 1 + _RIM, 3), np.float32)
    rays[:, 0] = axis
    for place in range(_RIM):
        turn = 2.0 * math.pi * place / _RIM
        rays[:, 1 + place] = ahead + math.cos(turn) * across + math.sin(turn) * up
    direction = rays.reshape(-1, 3)
    origin = np.repeat(origin_m, 1 + _RIM, axis=0)
    passes = (world.optics[:, Optic.POROSITY] > 0.0) | (world.optics[:, Optic.TRANSMISSION] > 0.0)
    sampled = np.zeros(len(direction))
    going = np.arange(len(direction))
    begin, rest = origin, direction
    for _ in range(_SURFACES):
        hits = np.empty(len(going), np.float32), np.empty(len(going), np.int32), np.empty(len(going), np.int32)
        cast_packets(world, packets_of(np.arange(len(going))), begin, rest, np.zeros(len(going), np.int64), max_range_m, False, *hits, NO_COSINE)  # noqa: FBT003 - kernels take their arguments by place
        sampled[going] += hits[0]
        hit = hits[2] >= 0
        going = going[hit][passes[world.material[hits[2][hit]]]]
        sampled[going] += _STEP_M
        if len(going) == 0:
            break
        rest = direction[going]
        begin = origin[going] + sampled[going, np.newaxis] * rest
    return -np.sort(-sampled.reshape(-1, 1 + _RIM), axis=1)


def build_cells(
    world: World,
    origin_m: npt.ArrayLike,
    axis: npt.ArrayLike,
    group: npt.ArrayLike,
    half_angle_rad: npt.ArrayLike,
    max_range_m: float,
    width_m: float = 0.0,
    spread: float = 0.0,
    most: int = 32,
) -> Cells:
    """Build lists of the static triangles that beams of each cell can hit; movers are not included.

    A beam is in a cell when its centre ray starts at the origin of the cell's group (within 1 um) in a direction within the half angle of the axis.

    Args:
        world: World whose static triangles are listed.
        origin_m: ``float64[g, 3]`` in the world.
        axis: ``float64[n, 3]``, unit vectors.
        group: ``int32[n]``, number of each cell's origin.
        half_angle_rad: ``float64[n]``, or one value for all cells.
        max_range_m: Maximum range of the rays.
        width_m: Largest distance of a ray's origin from the centre ray's.
        spread: Largest tangent of the angle between a ray and the centre ray.
        most: Maximum number of entries of a cell; rays of cells with more traverse the trees.

    Raises:
        ValueError: an axis is not a unit vector, a group has no origin, or a number is negative or not finite.
    """
    origins = np.ascontiguousarray(origin_m, dtype=np.float64).reshape(-1, 3)
    axes = np.ascontiguousarray(axis, dtype=np.float64).reshape(-1, 3)
    groups = np.ascontiguousarray(np.broadcast_to(np.asarray(group, dtype=np.int32), (len(axes),)))
    angles = np.broadcast_to(np.asarray(half_angle_rad, dtype=np.float64), (len(axes),))
    _check(origins, axes, groups, angles, max_range_m, width_m, spread, most)
    if world.tile_root < 0 or len(axes) == 0:
        return NO_CELLS._replace(first=frozen(np.zeros(len(axes) + 1), np.int32), reach_m=frozen(np.full(len(axes), np.inf), np.float32))
    nobody = np.zeros(0, np.int32)
    still = world._replace(key_first=nobody, key_count=nobody)
    wide_rad = angles + math.atan(spread) + _ANGLE_RAD
    counts, reaches, lists = [np.zeros(1, np.int32)], [], []
    entries = np.empty((_CHUNK * most, 3), np.int32)
    for begin in range(0, len(axes), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        sampled = _sampled_ranges(still, origins[groups[part]], axes[part], wide_rad[part], float(max_range_m))
        count, reach = np.empty(len(sampled), np.int32), np.empty(len(sampled), np.float32)
        where = origins, axes[part], groups[part], wide_rad[part], width_m + _ORIGIN_M + 1e-6
        total = _gather_cells(still, *where, sampled, float(max_range_m), most, count, reach, entries)
        counts.append(count)
        reaches.append(reach)
        lists.append(entries[:total].copy())
    row, box, tile = (frozen(column, np.int32) for column in np.concatenate(lists).T)
    return Cells(
        first=frozen(np.cumsum(np.concatenate(counts)), np.int32),
        row=row,
        box=box,
        tile=tile,
        reach_m=frozen(np.concatenate(reaches), np.float32),
        max_range_m=float(max_range_m),
    )


def build_turning_cells(
    world: World,
    origin_m: npt.ArrayLike,
    world_from_sensor: Quaternion,
    elevation_rad: npt.ArrayLike,
    sectors: int,
    max_range_m: float,
    width_m: float = 0.0,
    spread: float = 0.0,
    most: int = 32,
) -> Cells:
    """Build the cells of a rotating head at a fixed place, ``sectors`` per channel; ``render.cells.turning_cell`` is the cell of a beam.

    Args:
        world: World whose static triangles are listed.
        origin_m: ``float64[c, 3]``, origin of each channel's beams.
        world_from_sensor: Rotation of the sensor's frame, see ``geometry.frames``.
        elevation_rad: ``float64[c]``, elevation of each channel.
        sectors: Number of cells per turn. More cells have shorter lists, but take longer to build and more memory; 1800 to 3750 (0.2 to 0.1 degrees)
            suit a VLP-16.
        max_range_m: Longest range, as in ``build_cells``; likewise the arguments that follow.

    Raises:
        ValueError: as in ``build_cells``; less than 8 sectors; elevations and origins do not match.
    """
    elevation = np.asarray(elevation_rad, dtype=np.float64)
    origins = np.asarray(origin_m, dtype=np.float64).reshape(-1, 3)
    if sectors < 8:
        raise ValueError(f"sectors must be at least 8, got {sectors}")
    if elevation.shape != (len(origins),):
        raise ValueError(f"elevation_rad must be one for each of {len(origins)} origins, got shape {elevation.shape}")
    azimuth = (np.arange(sectors) + 0.5) * (2.0 * np.pi / sectors)
    level, rise = np.cos(elevation)[:, np.newaxis], np.sin(elevation)[:, np.newaxis]
    axis = np.stack(np.broadcast_arrays(level * np.sin(azimuth), level * np.cos(azimuth), rise), axis=-1).reshape(-1, 3)
    half_rad = 2.0 * np.arcsin(np.cos(elevation) * np.sin(0.5 * np.pi / sectors))  # angle between a sector's middle and its ends
    return build_cells(
        world,
        origins,
        axis @ matrix_from_quaternion(world_from_sensor).T,
        np.repeat(np.arange(len(origins)), sectors),
        np.repeat(half_rad, sectors),
        max_range_m,
        width_m,
        spread,
        most,
    )


def build_image_cells(
    world: World,
    origin_m: npt.ArrayLike,
    world_from_sensor: Quaternion,
    extent: tuple[float, float, float, float],
    columns: int,
    rows: int,
    max_range_m: float,
    width_m: float = 0.0,
    spread: float = 0.0,
    most: int = 32,
) -> Cells:
    """Build the cells of a sensor that sweeps an image from a fixed place; ``render.cells.image_cell_of`` is the cell of a beam.

    Args:
        world: World whose static triangles are listed.
        origin_m: ``float64[3]``, origin of all beams.
        world_from_sensor: Rotation of the sensor's frame (x right, y forward, z up).
        extent: Smallest and largest image x, smallest and largest image z.
        columns: Number of columns of the image.
        rows: Number of rows of the image.
        max_range_m: Longest range, as in ``build_cells``; likewise the arguments that follow.

    Raises:
        ValueError: as in ``build_cells``; the image has no extent.
    """
    x_min, x_max, z_min, z_max = extent
    if not (x_min < x_max and z_min < z_max and columns >= 1 and rows >= 1):
        raise ValueError(f"an image must have an extent and cells, got {extent}, {columns} columns and {rows} rows")
    x, z = np.linspace(x_min, x_max, columns + 1), np.linspace(z_min, z_max, rows + 1)

    def directions(image_x: npt.NDArray[np.float64], image_z: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        grid_z, grid_x = np.meshgrid(image_z, image_x, indexing="ij")
        ahead = np.stack([grid_x, np.ones_like(grid_x), grid_z], axis=-1).reshape(-1, 3)
        unit: npt.NDArray[np.float64] = ahead / np.linalg.norm(ahead, axis=1, keepdims=True)
        return unit

    axis = directions(0.5 * (x[1:] + x[:-1]), 0.5 * (z[1:] + z[:-1]))
    corners = [directions(x[a : columns + a], z[b : rows + b]) for a in (0, 1) for b in (0, 1)]
    half_rad = np.max([2.0 * np.arcsin(0.5 * np.linalg.norm(corner - axis, axis=1)) for corner in corners], axis=0)
    turned = axis @ matrix_from_quaternion(world_from_sensor).T
    return build_cells(
        world,
        np.asarray(origin_m, dtype=np.float64).reshape(1, 3),
        turned,
        np.zeros(len(axis), np.int32),
        half_rad,
        max_range_m,
        width_m,
        spread,
        most,
    )


def _check(
    origin_m: npt.NDArray[np.float64],
    axis: npt.NDArray[np.float64],
    group: npt.NDArray[np.int32],
    half_angle_rad: npt.NDArray[np.float64],
    max_range_m: float,
    width_m: float,
    spread: float,
    most: int,
) -> None:
    off = np.flatnonzero(~(np.abs(np.linalg.norm(axis, axis=1) - 1.0) <= 1e-6))
    if len(off):
        raise ValueError(f"row {off[0]}: axis must be a unit vector, got {axis[off[0]].tolist()}")
    off = np.flatnonzero((group < 0) | (group >= len(origin_m)))
    if len(off):
        raise ValueError(f"row {off[0]}: group must be 0 to {len(origin_m) - 1}, got {group[off[0]]}")
    if not np.isfinite(origin_m).all():
        raise ValueError("origin_m must be finite")
    if not ((half_angle_rad >= 0.0) & (half_angle_rad < 1.0)).all():
        raise ValueError("half_angle_rad must be 0 to below 1")
    for name, value in (("max_range_m", max_range_m), ("width_m", width_m), ("spread", spread)):
        if not 0.0 <= value < math.inf:
            raise ValueError(f"{name} must be at least 0 and finite, got {value}")
    if most < 1:
        raise ValueError(f"most must be at least 1, got {most}")
