"""A world and its rays as few arrays for a GPU, and the kernel that casts them: Numba takes some eight microseconds for each array of a launch.

What stands still is copied to the device once for each world. What changes is in memory that host and device share: rays, hits, what
``world.render.cast.bound_movers`` found, and keys that are written while the world is rendered. So a launch copies nothing, and waits for nothing but its rays.
"""

from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import cuda, int32

from hilsim.world.geometry.live_keys import LiveKeys
from hilsim.world.render.cast import RAY_STACK_SIZE, cast_span
from hilsim.world.scene.world import World

_HEAD = 16
"""First entries of ``words``: where the parts of the other arrays begin and end."""

_DeviceWorld: Any = namedtuple(  # noqa: PYI024 - the fields of another that casting reads
    "_DeviceWorld",
    "origin_m tile_count tile_root node_bounds node_links corners geometry_root geometry_origin_m instance_geometry key_first key_count period_ns "
    "key_time_ns key_position_m key_arrival_mps key_departure_mps key_orientation live",
)
_DeviceKeys: Any = namedtuple(  # noqa: PYI024 - the fields of another, by value
    "_DeviceKeys", "written time_ns position_m velocity_mps orientation is_seen keys"
)


class StillBlock(NamedTuple):
    """Part of a ``World`` that stands still: its arrays of one kind, one after another.

    Attributes:
        threes: ``float64[n, 3]``: ``origin_m``, ``geometry_origin_m``, ``key_position_m``, ``key_arrival_mps``, ``key_departure_mps``.
        fours: ``float64[n, 4]``: ``key_orientation``.
        words: ``int64[n]``: head, ``key_time_ns``, ``period_ns``. The head: 6 bounds of ``threes``, 3 of ``words``, 5 of ``numbers``, ``tile_count``,
            ``tile_root``.
        numbers: ``int32[n]``: ``geometry_root``, ``instance_geometry``, ``key_first``, ``key_count``.
        node_bounds: As in ``World``.
        corners: As in ``World``.
    """

    threes: Any
    fours: Any
    words: Any
    numbers: Any
    node_bounds: Any
    node_links: Any
    corners: Any


class MovingBlock(NamedTuple):
    """Rays, hits, and the part of a ``World`` that moves, packed as in ``StillBlock``.

    Attributes:
        threes: ``float64[n, 3]``: origins of rays, ``live.position_m``, ``live.velocity_mps``.
        fours: ``float64[n, 4]``: spheres of movers, ``live.orientation``.
        words: ``int64[n]``: head, times of rays, ``live.time_ns``. The head: 4 bounds of ``threes``, 3 of ``fours``, 3 of ``words``, 5 of ``numbers``,
            ``live.keys``.
        numbers: ``int32[n]``: instances and triangles that were hit, ranges (as float32), movers.
        directions: ``float32[n, 3]``.
        written: ``live.written``.
        is_seen: ``live.is_seen``.
    """

    threes: Any
    fours: Any
    words: Any
    numbers: Any
    directions: Any
    written: Any
    is_seen: Any


def still_block(world: World) -> StillBlock:
    """Pack what stands still of a world, on the host."""
    threes, of_threes = _stacked(
        [world.origin_m[None], world.geometry_origin_m, world.key_position_m, world.key_arrival_mps, world.key_departure_mps]
    )
    words, of_words = _stacked([np.zeros(_HEAD, np.int64), world.key_time_ns, world.period_ns])
    numbers, of_numbers = _stacked([world.geometry_root, world.instance_geometry, world.key_first, world.key_count])
    words[:_HEAD] = [*of_threes, *of_words[1:], *of_numbers, world.tile_count, world.tile_root]
    return StillBlock(threes, world.key_orientation, words, numbers, world.node_bounds, world.node_links, world.corners)


def _stacked(parts: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], list[int]]:
    """Parts one after another, and where each begins and the last ends."""
    return np.concatenate(parts), [0, *np.cumsum([len(part) for part in parts]).tolist()]


class HostParts:
    """A ``MovingBlock`` in memory that the device sees, and its parts for the host.

    Attributes:
        block: The block, for the kernel.
        rays: Room for rays.
        movers: Room for movers.
        origin_m: ``float64[rays, 3]``, in.
        direction: ``float32[rays, 3]``, in.
        time_ns: ``int64[rays]``, in.
        spheres: ``float64[movers, 4]``, in.
        mover: ``int32[movers]``, in.
        range_m: ``float32[rays]``, out.
        instance: ``int32[rays]``, out.
        triangle: ``int32[rays]``, out.
    """

    def __init__(self, rays: int, movers: int, live: LiveKeys, allocate: Callable[..., Any]) -> None:
        """Allocate with ``allocate(shape, dtype)``."""
        self.rays, self.movers = rays, movers
        keys = len(live.time_ns)
        of_threes, of_fours = [0, rays, rays + keys, rays + 2 * keys], [0, movers, movers + keys]
        of_words, of_numbers = [_HEAD, _HEAD + rays, _HEAD + rays + keys], [0, rays, 2 * rays, 3 * rays, 3 * rays + movers]
        self.block = MovingBlock(
            threes=allocate((of_threes[-1], 3), np.float64),
            fours=allocate((of_fours[-1], 4), np.float64),
            words=allocate(of_words[-1], np.int64),
            numbers=allocate(of_numbers[-1], np.int32),
            directions=allocate((rays, 3), np.float32),
            written=allocate((max(1, len(live.written)), live.written.shape[1]), np.int64),
            is_seen=allocate(max(1, keys), np.uint8),
        )
        threes, fours, words, numbers, self.direction, written, is_seen = (np.asarray(array) for array in self.block)
        words[:_HEAD] = [*of_threes, *of_fours, *of_words, *of_numbers, live.keys]
        self.origin_m, self.time_ns, self.spheres = threes[:rays], words[_HEAD : _HEAD + rays], fours[:movers]
        self.instance, self.triangle, self.range_m = numbers[:rays], numbers[rays : 2 * rays], numbers[2 * rays : 3 * rays].view(np.float32)
        self.mover = numbers[3 * rays :]
        self._keys = (
            written[: len(live.written)],
            words[_HEAD + rays :],
            threes[rays : rays + keys],
            threes[rays + keys :],
            fours[movers:],
            is_seen[:keys],
        )

    def hold(self, rays: int, movers: int, live: LiveKeys) -> bool:
        """Whether there is room for some rays, movers and keys."""
        return rays <= self.rays and movers <= self.movers and len(live.time_ns) == len(self._keys[1])

    def read_keys(self, live: LiveKeys) -> None:
        """Copy keys as they are now. The counts come first: keys that are written during the copy are not yet counted in it."""
        for there, here in zip(self._keys, live, strict=False):  # the last field is a number, which never changes
            there[:] = here


def cast_on_device(still: StillBlock, moving: MovingBlock, ray_count: int, mover_count: int, max_range_m: float) -> None:
    """Cast one ray per thread: the body of the CUDA kernel."""
    ray = cuda.grid(1)
    if ray < ray_count:
        head, place = still.words, moving.words
        live = _DeviceKeys(
            moving.written,
            moving.words[place[8] : place[9]],
            moving.threes[place[1] : place[2]],
            moving.threes[place[2] : place[3]],
            moving.fours[place[5] : place[6]],
            moving.is_seen,
            place[15],
        )
        world = _DeviceWorld(
            still.threes[0],
            head[14],
            head[15],
            still.node_bounds,
            still.node_links,
            still.corners,
            still.numbers[head[9] : head[10]],
            still.threes[head[1] : head[2]],
            still.numbers[head[10] : head[11]],
            still.numbers[head[11] : head[12]],
            still.numbers[head[12] : head[13]],
            still.words[head[7] : head[8]],
            still.words[head[6] : head[7]],
            still.threes[head[2] : head[3]],
            still.threes[head[3] : head[4]],
            still.threes[head[4] : head[5]],
            still.fours,
            live,
        )
        cast_span(
            world,  # type: ignore[arg-type]  # it has what of a World casting reads
            moving.threes[: place[1]],
            moving.directions,
            moving.words[place[7] : place[8]],
            max_range_m,
            ray,
            ray + 1,
            moving.fours[: place[5]],
            moving.numbers[place[13] : place[14]],
            mover_count,
            cuda.local.array(RAY_STACK_SIZE, int32),
            moving.numbers[place[12] : place[13]].view(np.float32),
            moving.numbers[: place[11]],
            moving.numbers[place[11] : place[12]],
        )
