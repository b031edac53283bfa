"""Renderers that Python calls: in place of the kernels of ``world.render.cpu``, or on a device."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hilsim.world.scene.world import World


class Renderer(Protocol):
    """A ray caster; all renderers agree within 1 mm. ``world.render.cpu.cast_rays`` documents shapes, units and misses."""

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
        max_range_m: Range beyond which hits are ignored.
        range_m: ``float32[n]`` out; infinity for a miss.
        instance: ``int32[n]`` out; -1 for a miss.
        triangle: ``int32[n]`` out, row of the world's triangles; -1 for a miss.
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
