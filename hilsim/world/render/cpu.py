"""Ray casting on the CPU: one by one for a few rays, in packets for many; the hits are bit-identical."""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.compilation.lanes import WIDTH
from hilsim.world.render.cast import RAY_STACK_SIZE, bound_movers, cast_span
from hilsim.world.render.packets import cast_packets
from hilsim.world.scene.world import World

_CHUNK = constant(1024)  # rays that share one set of mover spheres: few enough that the time span, and so the spheres, are small


@kernel
def cast_rays(
    world: World,
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
    time_ns: npt.NDArray[np.int64],
    max_range_m: float,
    range_m: npt.NDArray[np.float32],
    instance: npt.NDArray[np.int32],
    triangle: npt.NDArray[np.int32],
) -> None:
    """Cast rays one by one, each at its own time; a ray's result does not depend on its neighbours. For a few rays; ``cast_many`` is for scans.

    Args:
        world: World to cast into.
        origin_m: ``float64[n, 3]`` in the world.
        direction: ``float32[n, 3]``, unit vectors in the world.
        time_ns: ``int64[n]``, rig time.
        max_range_m: Maximum range of a hit.
        range_m: ``float32[n]``, output; infinity for a miss. Error below 1 mm against float64 everywhere, also at UTM coordinates (tests).
        instance: ``int32[n]``, output; -1 for a miss.
        triangle: ``int32[n]``, output, row of the world's triangles; -1 for a miss.
    """
    stack = np.empty(RAY_STACK_SIZE, dtype=np.int32)
    mover_total = world.key_first.shape[0]
    spheres = np.empty((mover_total, 4), dtype=np.float64)
    movers = np.empty(mover_total, dtype=np.int32)
    for begin in range(0, range_m.shape[0], _CHUNK):
        end = min(begin + _CHUNK, range_m.shape[0])
        mover_count = bound_movers(world, origin_m, direction, time_ns, begin, end, max_range_m, spheres, movers)
        cast_span(
            world,
            origin_m,
            direction,
            time_ns,
            max_range_m,
            begin,
            end,
            spheres,
            movers,
            mover_count,
            stack,
            range_m,
            instance,
            triangle,
        )


@kernel
def cast_many(
    world: World,
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
    time_ns: npt.NDArray[np.int64],
    max_range_m: float,
    range_m: npt.NDArray[np.float32],
    instance: npt.NDArray[np.int32],
    triangle: npt.NDArray[np.int32],
) -> None:
    """``cast_rays``, sixteen rays at a time: fast when neighbouring rays have similar directions, as those of a channel."""
    packets = np.empty((_CHUNK // WIDTH, WIDTH), dtype=np.int32)
    no_cosine = np.empty(0, dtype=np.float64)
    for ray in range(_CHUNK):
        packets[ray // WIDTH, ray % WIDTH] = ray
    for begin in range(0, range_m.shape[0], _CHUNK):
        end = min(begin + _CHUNK, range_m.shape[0])
        cast_packets(
            world,
            packets[: (end - begin + WIDTH - 1) // WIDTH],
            origin_m[begin:end],
            direction[begin:end],
            time_ns[begin:end],
            max_range_m,
            range_m[begin:end],
            instance[begin:end],
            triangle[begin:end],
            no_cosine,
        )
