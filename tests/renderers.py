"""Renderers of the tests: the compiled kernel over threads, and the oracle, which tries every ray against every triangle in NumPy float64, without trees."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.world.geometry.rotations import matrix_from_quaternion
from hilsim.world.geometry.tracks import PoseTrack, track_state
from hilsim.world.render.cpu import cast_many
from hilsim.world.render.renderer import Renderer
from hilsim.world.scene.world import World

_TOLERANCE = 1e-9
_RAYS_PER_THREAD_MIN = 4096  # below this, handing work over costs more than the work


class Hits(NamedTuple):
    """What rays met.

    Attributes:
        range_m: ``float32[n]``, infinity for a miss.
        instance: ``int32[n]``, -1 for a miss.
        triangle: ``int32[n]``, row of the world's triangles, -1 for a miss.
    """

    range_m: npt.NDArray[np.float32]
    instance: npt.NDArray[np.int32]
    triangle: npt.NDArray[np.int32]


class CpuRenderer:
    """The compiled kernel, over a pool of threads when ``threads`` is above 1: the same hits whatever the number.

    Serial kernels on slices, never Numba's own threads: those abort the process when two Python threads start them at once.
    """

    def __init__(self, threads: int = 1) -> None:
        if threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}")
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="render") if threads > 1 else None

    def cast_rays(
        self,
        world: World,
        origin_m: npt.NDArray[np.float64],
        direction: npt.NDArray[np.float32],
        time_ns: npt.NDArray[np.int64],
        max_range_m: float,
        range_m: npt.NDArray[np.float32],
        instance: npt.NDArray[np.int32],
        triangle: npt.NDArray[np.int32],
    ) -> None:
        """Fill ``range_m``, ``instance`` and ``triangle``."""
        count = len(range_m)
        slices = min(self._threads, max(1, count // _RAYS_PER_THREAD_MIN))
        if self._pool is None or slices == 1:
            cast_many(world, origin_m, direction, time_ns, float(max_range_m), range_m, instance, triangle)
            return
        edges = [count * part // slices for part in range(slices + 1)]
        jobs = [
            self._pool.submit(
                cast_many, world, origin_m[a:b], direction[a:b], time_ns[a:b], float(max_range_m), range_m[a:b], instance[a:b], triangle[a:b]
            )
            for a, b in pairwise(edges)
        ]
        for job in jobs:
            job.result()

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def cast(
    renderer: Renderer,
    world: World,
    origin_m: npt.ArrayLike,
    direction: npt.ArrayLike,
    time_ns: npt.ArrayLike = 0,
    max_range_m: float = 200.0,
) -> Hits:
    """Cast rays with fresh arrays for the hits; arguments are converted, one origin or time serves all rays.

    Raises:
        ValueError: a direction that is not a unit vector, or an array that does not fit.
    """
    directions = np.ascontiguousarray(direction, dtype=np.float32).reshape(-1, 3)
    lengths = np.linalg.norm(directions.astype(np.float64), axis=1)
    if not np.allclose(lengths, 1.0, rtol=0.0, atol=1e-5):
        row = int(np.argmax(~(np.abs(lengths - 1.0) <= 1e-5)))
        raise ValueError(f"row {row}: direction must be a unit vector, got {directions[row].tolist()}")
    count = len(directions)
    origins = np.ascontiguousarray(np.broadcast_to(np.asarray(origin_m, dtype=np.float64), (count, 3)))
    times = np.ascontiguousarray(np.broadcast_to(np.asarray(time_ns, dtype=np.int64), (count,)))
    hits = Hits(np.empty(count, dtype=np.float32), np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32))
    renderer.cast_rays(world, origins, directions, times, float(max_range_m), hits.range_m, hits.instance, hits.triangle)
    return hits


class ReferenceRenderer:
    """A ``Renderer`` of about 1 Mtriangle a second per ray; same arguments and results as ``world.render.cpu.cast_rays``."""

    def cast_rays(
        self,
        world: World,
        origin_m: npt.NDArray[np.float64],
        direction: npt.NDArray[np.float32],
        time_ns: npt.NDArray[np.int64],
        max_range_m: float,
        range_m: npt.NDArray[np.float32],
        instance: npt.NDArray[np.int32],
        triangle: npt.NDArray[np.int32],
    ) -> None:
        """Fill ``range_m``, ``instance`` and ``triangle``."""
        for ray in range(len(range_m)):
            best = (float(max_range_m), -1, -1)
            for number, geometry in enumerate(world.instance_geometry):
                origin = origin_m[ray]
                heading = direction[ray].astype(np.float64)
                if number >= world.tile_count:
                    position, turn = track_state(mover_track(world, number - world.tile_count), int(time_ns[ray]))
                    body_from_world = matrix_from_quaternion(turn).T
                    origin = body_from_world @ (origin - np.array(position))
                    heading = body_from_world @ heading
                rows = geometry_rows(world, int(geometry))
                distance = _distances(world.corners[rows].astype(np.float64), origin - world.geometry_origin_m[geometry], heading)
                nearest = int(np.argmin(distance))
                if distance[nearest] < best[0]:
                    best = (float(distance[nearest]), number, int(rows[nearest]))
            found = best[1] >= 0
            range_m[ray] = best[0] if found else np.inf
            instance[ray], triangle[ray] = best[1:]


def mover_track(world: World, mover: int) -> PoseTrack:
    """The pose track of a mover."""
    keys = slice(world.key_first[mover], world.key_first[mover] + world.key_count[mover])
    return PoseTrack(
        world.key_time_ns[keys],
        world.key_position_m[keys],
        world.key_arrival_mps[keys],
        world.key_departure_mps[keys],
        world.key_orientation[keys],
        int(world.period_ns[mover]),
    )


def geometry_rows(world: World, geometry: int) -> npt.NDArray[np.int64]:
    """Rows of the world's triangles in a geometry, found by traversing its tree."""
    rows: list[npt.NDArray[np.int64]] = []
    waiting = [int(world.geometry_root[geometry])]
    while waiting:
        link = waiting.pop()
        if link >= 0:
            waiting.extend(int(child) for child in world.node_links[link, 12:14])
        else:
            first, count = (-1 - link) >> 3, (-1 - link) & 7
            rows.append(np.arange(first, first + count))
    return np.sort(np.concatenate(rows))


def _distances(corners: npt.NDArray[np.float64], origin: npt.NDArray[np.float64], heading: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Distance along one ray to each triangle ``float64[m, 9]``, infinity for a miss: plane first, then the side of each edge."""
    a, e1, e2 = corners[:, :3], corners[:, 3:6], corners[:, 6:]
    normal = np.cross(e1, e2)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.einsum("ij,ij->i", normal, a - origin) / (normal @ heading)
        point = origin + distance[:, np.newaxis] * heading - a
        square = np.einsum("ij,ij->i", normal, normal)
        u = np.einsum("ij,ij->i", np.cross(point, e2), normal) / square
        v = np.einsum("ij,ij->i", np.cross(e1, point), normal) / square
        inside = (u >= -_TOLERANCE) & (v >= -_TOLERANCE) & (u + v <= 1.0 + _TOLERANCE) & (distance > 0.0) & np.isfinite(distance)
    found: npt.NDArray[np.float64] = np.where(inside, distance, np.inf)
    return found
