"""Renderers: the protocol, the CPU's renderer, and hits as arrays."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hilsim.render.cpu import cast_many
from hilsim.scene.world import World

_RAYS_PER_THREAD_MIN = 4096  # below this, distributing the work costs more than the work


class Hits(NamedTuple):
    """Hits of rays.

    Attributes:
        range_m: ``float32[n]``, infinity for a miss.
        instance: ``int32[n]``, -1 for a miss.
        triangle: ``int32[n]``, row of the world's triangles, -1 for a miss.
    """

    range_m: npt.NDArray[np.float32]
    instance: npt.NDArray[np.int32]
    triangle: npt.NDArray[np.int32]


class Renderer(Protocol):
    """A ray caster; all renderers agree within 1 mm. ``render.cpu.cast_rays`` documents shapes, units and misses."""

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
        ...


class RaySlice(NamedTuple):
    """Rays, of one packet for example, and arrays for their hits.

    Attributes:
        origin_m: ``float64[n, 3]`` in the world.
        direction: ``float32[n, 3]``, unit vectors in the world.
        time_ns: ``int64[n]``, rig time.
        max_range_m: Maximum range of a hit.
        range_m: ``float32[n]``, output, as in ``Hits``.
        instance: ``int32[n]``, output.
        triangle: ``int32[n]``, output.
    """

    origin_m: npt.NDArray[np.float64]
    direction: npt.NDArray[np.float32]
    time_ns: npt.NDArray[np.int64]
    max_range_m: float
    range_m: npt.NDArray[np.float32]
    instance: npt.NDArray[np.int32]
    triangle: npt.NDArray[np.int32]


class DeviceRenderer(Protocol):
    """Casts many slices of rays at once, outside the calling threads; several threads may call it at the same time.

    Attributes:
        name: Name of the device for messages.
    """

    name: str

    def cast_slices(self, world: World, slices: Sequence[RaySlice]) -> None:
        """Fill the slices' hits.

        Raises:
            DeviceError: the device has failed.
        """
        ...


class CpuRenderer:
    """The compiled kernel, in a thread pool when ``threads`` is above 1; the hits do not depend on the number.

    Serial kernels on slices, never Numba's own threads, which abort the process when two Python threads start them at once.
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
    """Cast rays into new arrays for the hits; arguments are converted, and a single origin or time applies to all rays.

    Raises:
        ValueError: a direction is not a unit vector, or an array has the wrong shape.
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
