"""Ray casting on an NVIDIA GPU: a thin kernel around the CPU's source, which Numba compiles for the device.

Import needs no GPU; a ``CudaRenderer`` does. With ``NUMBA_ENABLE_CUDASIM=1`` Numba's simulator replaces the GPU. Results agree
with the CPU's within 1 mm, not bit for bit: the GPU fuses multiplications with additions.
"""

import threading
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import config, cuda
from numba.core.errors import NumbaError, NumbaPerformanceWarning

from hilsim.errors import DeviceError
from hilsim.world.render.cast import bound_movers
from hilsim.world.render.device_blocks import HostParts, StillBlock, cast_on_device, still_block
from hilsim.world.render.intersect import INFINITY
from hilsim.world.render.renderer import RaySlice
from hilsim.world.scene.world import World

_THREADS_PER_BLOCK = 64
"""Few, so that the rays of a packet are spread over the GPU."""
_MIN_RAYS = 4096


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
        warnings.filterwarnings("ignore", "Grid size", NumbaPerformanceWarning)  # a packet has few rays for a GPU
        _try_compiler()
        self._kernel: Any = cuda.jit(cast_on_device)
        self._stream: Any = None if config.ENABLE_CUDASIM else cuda.stream()
        self._world: World | None = None
        self._still: StillBlock | None = None
        self._parts: HostParts | None = None
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
            self._world = self._parts = None
            fault = error
        for request in requests:
            request.fault, request.is_done = fault, True

    def _launch(self, world: World, slices: Sequence[RaySlice]) -> None:
        """Cast all rays of some slices at once."""
        if not slices:
            return
        if world is not self._world:
            self._still, self._world = StillBlock(*map(_on_device, still_block(world))), world
        count = sum(len(part.range_m) for part in slices)
        parts, movers = self._parts, max(1, len(world.key_first))
        if parts is None or not parts.hold(count, movers, world.live):
            room = max(_MIN_RAYS, 1 << (count - 1).bit_length())
            parts = self._parts = HostParts(room, movers, world.live, np.zeros if config.ENABLE_CUDASIM else cuda.mapped_array)
        begins = np.concatenate(([0], np.cumsum([len(part.range_m) for part in slices])))
        for part, begin, end in zip(slices, begins, begins[1:], strict=False):
            parts.origin_m[begin:end], parts.direction[begin:end], parts.time_ns[begin:end] = part.origin_m, part.direction, part.time_ns
        furthest_m = max(part.max_range_m for part in slices)
        mover_count = bound_movers(world, parts.origin_m, parts.direction, parts.time_ns, 0, count, furthest_m, parts.spheres, parts.mover)
        parts.read_keys(world.live)
        blocks = (count + _THREADS_PER_BLOCK - 1) // _THREADS_PER_BLOCK
        self._kernel[blocks, _THREADS_PER_BLOCK, self._stream or 0](self._still, parts.block, count, int(mover_count), furthest_m)
        if self._stream is not None:
            self._stream.synchronize()
        for part, begin, end in zip(slices, begins, begins[1:], strict=False):
            part.range_m[:], part.instance[:], part.triangle[:] = parts.range_m[begin:end], parts.instance[begin:end], parts.triangle[begin:end]
            if part.max_range_m < furthest_m:  # a hit beyond the slice's own maximum range is a miss
                beyond = part.range_m >= part.max_range_m
                part.range_m[beyond], part.instance[beyond], part.triangle[beyond] = INFINITY, -1, -1


class _Request:
    """Request of one thread, and its result."""

    def __init__(self, world: World, slices: Sequence[RaySlice]) -> None:
        self.world, self.slices = world, slices
        self.is_done = False
        self.fault: Exception | None = None


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


def _on_device(value: npt.NDArray[Any]) -> Any:
    """Copy an array to the device, unless the device is simulated: the simulator's threads call the compiled CPU function, which requires NumPy arrays."""
    if config.ENABLE_CUDASIM:
        return value
    # An array without elements has no address on the device; one unused element has.
    return cuda.to_device(value if value.size else np.zeros((1, *value.shape[1:]), dtype=value.dtype))
