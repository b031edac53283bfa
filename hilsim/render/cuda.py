"""Ray casting on an NVIDIA GPU: a thin kernel around the CPU's source, which Numba compiles for the device.

Import needs no GPU; a ``CudaRenderer`` does. With ``NUMBA_ENABLE_CUDASIM=1`` Numba's simulator replaces the GPU. Results agree
with the CPU's within 1 mm, not bit for bit: the GPU fuses multiplications with additions.
"""

import threading
from collections import namedtuple
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import config, cuda, int32
from numba.core.errors import NumbaError

from hilsim.errors import DeviceError
from hilsim.geometry.live_keys import LiveKeys
from hilsim.render.cast import RAY_STACK_SIZE, bound_movers, cast_span
from hilsim.render.intersect import INFINITY
from hilsim.render.renderer import RaySlice
from hilsim.scene.world import World

_THREADS_PER_BLOCK = 128
_LEAST_RAYS = 4096
_DeviceWorld: Any = namedtuple("_DeviceWorld", World._fields)  # type: ignore[misc]  # noqa: PYI024 - the fields of another
"""Passed by value, because the device has no address of a ``World``."""
_DeviceKeys: Any = namedtuple("_DeviceKeys", LiveKeys._fields)  # type: ignore[misc]  # noqa: PYI024 - the fields of another


class RayBatch(NamedTuple):
    """Rays, the movers that they can hit, and arrays for the hits; shapes as in ``render.cast.cast_span``, of which the first ``ray_count`` rows are used."""

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
    ray_count: int


def cast_on_device(world: World, batch: RayBatch) -> None:
    """Cast one ray per thread: the body of the CUDA kernel."""
    ray = cuda.grid(1)
    if ray < batch.ray_count:
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
    """A ``Renderer`` and a ``DeviceRenderer`` on the first GPU; it keeps the last world on the device.

    Threads may share it: requests that arrive while the device is busy are cast together by one launch afterwards.

    Attributes:
        name: Name of the GPU.

    Raises:
        DeviceError: there is no usable GPU, or numba-cuda cannot compile for it.
    """

    def __init__(self) -> None:
        if not cuda.is_available():
            raise DeviceError("must have an NVIDIA GPU and its driver for cuda, found none")
        self.name = device_name()
        _try_compiler()
        self._kernel: Any = cuda.jit(cast_on_device)
        self._host_world: World | None = None
        self._device_world: Any = None
        self._buffers: _Buffers | None = None
        self._device, self._asking = threading.Lock(), threading.Lock()
        self._waiting: list[_Request] = []

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
        self.cast_slices(world, [RaySlice(origin_m, direction, time_ns, float(max_range_m), range_m, instance, triangle)])

    def cast_slices(self, world: World, slices: Sequence[RaySlice]) -> None:
        """Fill the slices' hits.

        Raises:
            DeviceError: the GPU or its driver has failed.
        """
        request = _Request(world, slices)
        with self._asking:
            self._waiting.append(request)
        with self._device:
            if not request.is_done:
                with self._asking:
                    requests, self._waiting = self._waiting, []
                for of in {id(other.world): other.world for other in requests}.values():
                    self._serve(of, [other for other in requests if other.world is of])
        if request.fault is not None:
            raise DeviceError(f"{self.name}: {request.fault}") from request.fault

    def _serve(self, world: World, requests: "Sequence[_Request]") -> None:
        """Cast the requests for one world."""
        fault: Exception | None = None
        try:
            self._launch(world, [part for request in requests for part in request.slices if len(part.range_m)])
        except (cuda.cudadrv.driver.CudaAPIError, MemoryError) as error:
            self._host_world = self._buffers = None
            fault = error
        for request in requests:
            request.fault, request.is_done = fault, True

    def _launch(self, world: World, slices: Sequence[RaySlice]) -> None:
        """Cast all rays of some slices at once."""
        if not slices:
            return
        if world is not self._host_world:
            self._device_world, self._host_world = device_world(world), world
        elif len(world.live.written):  # keys are written while the world is rendered
            self._device_world = self._device_world._replace(live=device_keys(world.live))
        count = sum(len(part.range_m) for part in slices)
        buffers = self._buffers
        if buffers is None or not buffers.hold(count, world):
            buffers = self._buffers = _Buffers(count, world)
        host = buffers.host
        begins = np.concatenate(([0], np.cumsum([len(part.range_m) for part in slices])))
        for part, begin, end in zip(slices, begins, begins[1:], strict=False):
            host.origin_m[begin:end], host.direction[begin:end], host.time_ns[begin:end] = part.origin_m, part.direction, part.time_ns
        furthest_m = max(part.max_range_m for part in slices)
        mover_count = bound_movers(world, host.origin_m, host.direction, host.time_ns, 0, count, furthest_m, host.spheres, host.movers)
        buffers.cast(self._kernel, self._device_world, count, furthest_m, int(mover_count))
        for part, begin, end in zip(slices, begins, begins[1:], strict=False):
            part.range_m[:], part.instance[:], part.triangle[:] = host.range_m[begin:end], host.instance[begin:end], host.triangle[begin:end]
            if part.max_range_m < furthest_m:  # a hit beyond the slice's own maximum range is a miss
                beyond = part.range_m >= part.max_range_m
                part.range_m[beyond], part.instance[beyond], part.triangle[beyond] = INFINITY, -1, -1


class _Request:
    """Request of one thread, and its result."""

    def __init__(self, world: World, slices: Sequence[RaySlice]) -> None:
        self.world, self.slices = world, slices
        self.is_done = False
        self.fault: Exception | None = None


class _Arrays(NamedTuple):
    """Arrays of a ``RayBatch``, on the host or on the device."""

    origin_m: Any
    direction: Any
    time_ns: Any
    spheres: Any
    movers: Any
    range_m: Any
    instance: Any
    triangle: Any


class _Buffers:
    """Memory for rays and hits: page-locked on the host, for copies without the CPU, and the same on the device.

    The simulator's threads call the compiled CPU function, which requires NumPy arrays: there both are the same.
    """

    def __init__(self, rays: int, world: World) -> None:
        self._rays = max(_LEAST_RAYS, 1 << (rays - 1).bit_length())
        self._movers = max(1, len(world.key_first))
        is_simulated = bool(config.ENABLE_CUDASIM)
        self.host = self._allocate(np.zeros if is_simulated else cuda.pinned_array)
        self._on_device = self.host if is_simulated else self._allocate(cuda.device_array)
        self._stream: Any = None if is_simulated else cuda.stream()

    def hold(self, rays: int, world: World) -> bool:
        """Whether there is room for a number of rays and for the movers of a world."""
        return rays <= self._rays and len(world.key_first) <= self._movers

    def cast(self, kernel: Any, world: Any, count: int, max_range_m: float, mover_count: int) -> None:
        """Cast the first ``count`` rays: copy them to the device, run the kernel, copy the hits back."""
        host, there = self.host, self._on_device
        blocks = (count + _THREADS_PER_BLOCK - 1) // _THREADS_PER_BLOCK
        batch = RayBatch(
            there.origin_m,
            there.direction,
            there.time_ns,
            max_range_m,
            there.spheres,
            there.movers,
            mover_count,
            there.range_m,
            there.instance,
            there.triangle,
            count,
        )
        if self._stream is None:
            kernel[blocks, _THREADS_PER_BLOCK](world, batch)
            return
        for name in ("origin_m", "direction", "time_ns"):
            getattr(there, name)[:count].copy_to_device(getattr(host, name)[:count], stream=self._stream)
        for name in ("spheres", "movers"):
            getattr(there, name).copy_to_device(getattr(host, name), stream=self._stream)
        kernel[blocks, _THREADS_PER_BLOCK, self._stream](world, batch)
        for name in ("range_m", "instance", "triangle"):
            getattr(there, name)[:count].copy_to_host(getattr(host, name)[:count], stream=self._stream)
        self._stream.synchronize()

    def _allocate(self, make: Any) -> _Arrays:
        rays, movers = self._rays, self._movers
        return _Arrays(
            make((rays, 3), dtype=np.float64),
            make((rays, 3), dtype=np.float32),
            make(rays, dtype=np.int64),
            make((movers, 4), dtype=np.float64),
            make(movers, dtype=np.int32),
            make(rays, dtype=np.float32),
            make(rays, dtype=np.int32),
            make(rays, dtype=np.int32),
        )


def device_name() -> str:
    """Name of the GPU in use; there must be one."""
    if config.ENABLE_CUDASIM:
        return "Numba's simulator of CUDA"
    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


def _try_compiler() -> None:
    """Compile and run an empty kernel: a numba-cuda that does not suit its NumPy or its driver fails at the first kernel, not at import.

    Raises:
        DeviceError: it fails.
    """
    try:
        cuda.jit(_nothing)[1, 1]()
    except (AttributeError, ImportError, NumbaError, cuda.cudadrv.driver.CudaAPIError) as error:
        raise DeviceError(f"must have a numba-cuda that compiles (pip install 'hilsim-lidar[cuda]'), got {type(error).__name__}: {error}") from error


def _nothing() -> None:
    """Empty kernel."""


def device_world(world: World) -> Any:
    """Copy a world to the device, as a tuple by value for ``cast_on_device``."""
    return _DeviceWorld(*(device_keys(value) if isinstance(value, LiveKeys) else _to_device(value) for value in world))


def device_keys(live: LiveKeys) -> Any:
    """Copy live keys to the device. The counts are copied first: keys that are written during the copy are not yet counted in it."""
    return _DeviceKeys(*(_to_device(value) for value in live))


def _to_device(value: Any) -> Any:
    """Copy an array to the device; scalars, and the arrays that ``_Buffers`` contains, are returned unchanged."""
    if not isinstance(value, np.ndarray) or config.ENABLE_CUDASIM:
        return value
    # An array without elements has no address on the device; one unused element has.
    return cuda.to_device(value if value.size else np.zeros((1, *value.shape[1:]), dtype=value.dtype))
