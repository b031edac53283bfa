"""Ray casting on an NVIDIA GPU: a thin kernel around the CPU's own source, which Numba compiles for the device.

Importing needs no GPU; making a ``CudaRenderer`` does. Under ``NUMBA_ENABLE_CUDASIM=1`` Numba's simulator stands in for the GPU. Results agree
with the CPU's within 1 mm, not bit for bit: the GPU fuses multiplications with additions.
"""

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import config, cuda, int32

from hilsim.render.cast import RAY_STACK_SIZE, bound_movers, cast_span
from hilsim.scene.world import World

_THREADS_PER_BLOCK = 128
_DeviceWorld: Any = namedtuple("_DeviceWorld", World._fields)  # type: ignore[misc]  # noqa: PYI024 - the fields of another
"""By value: there is no address on the device to pass a ``World`` by."""


class RayBatch(NamedTuple):
    """Rays, the movers that matter to them, and where their hits go; shapes as ``render.cast.cast_span``."""

    origin_m: Any
    direction: Any
    time_ns: Any
    max_range_m: float
    spheres: Any
    movers: Any
    mover_count: int
    range_m: Any
    instance: Any
    triangle: Any


def cast_on_device(world: World, batch: RayBatch) -> None:
    """One thread a ray: the body of the CUDA kernel."""
    ray = cuda.grid(1)
    if ray < batch.range_m.shape[0]:
        stack = cuda.local.array(RAY_STACK_SIZE, int32)
        cast_span(
            world,
            batch.origin_m,
            batch.direction,
            batch.time_ns,
            batch.max_range_m,
            ray,
            ray + 1,
            batch.spheres,
            batch.movers,
            batch.mover_count,
            stack,
            batch.range_m,
            batch.instance,
            batch.triangle,
        )


class CudaRenderer:
    """A ``Renderer`` on the first GPU; keeps the last world it was given on the device.

    Raises:
        RuntimeError: there is no usable GPU.
    """

    def __init__(self) -> None:
        if not cuda.is_available():
            raise RuntimeError("must have an NVIDIA GPU and its driver for cuda, found none")
        self._kernel: Any = cuda.jit(cast_on_device)
        self._host_world: World | None = None
        self._device_world: Any = None

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
        if count == 0:
            return
        if world is not self._host_world:
            self._device_world = device_world(world)
            self._host_world = world
        spheres = np.zeros((max(1, len(world.key_first)), 4), dtype=np.float64)
        movers = np.zeros(max(1, len(world.key_first)), dtype=np.int32)
        mover_count = bound_movers(world, origin_m, direction, time_ns, 0, count, float(max_range_m), spheres, movers)
        results = (_to_device(range_m), _to_device(instance), _to_device(triangle))
        batch = RayBatch(
            _to_device(origin_m),
            _to_device(direction),
            _to_device(time_ns),
            float(max_range_m),
            _to_device(spheres),
            _to_device(movers),
            int(mover_count),
            *results,
        )
        blocks = (count + _THREADS_PER_BLOCK - 1) // _THREADS_PER_BLOCK
        self._kernel[blocks, _THREADS_PER_BLOCK](self._device_world, batch)
        for device, host in zip(results, (range_m, instance, triangle), strict=True):
            if device is not host:
                device.copy_to_host(host)


def device_world(world: World) -> Any:
    """A world as ``cast_on_device`` takes it: by value, with its arrays on the device."""
    return _DeviceWorld(*(_to_device(value) for value in world))


def _to_device(value: Any) -> Any:
    """An array on the device; scalars as they are. The simulator's threads call the compiled CPU function, which wants NumPy's own arrays."""
    if not isinstance(value, np.ndarray) or config.ENABLE_CUDASIM:
        return value
    # An array without elements has no device memory to point at; one element that nobody reads has.
    return cuda.to_device(value if value.size else np.zeros((1, *value.shape[1:]), dtype=value.dtype))
