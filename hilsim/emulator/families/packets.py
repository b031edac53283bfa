"""Fourth stage: returns → bytes of packets, by the kernels that a lidar's family brings in the class of ``LidarPlan.own`` (``emulator.families.own``).

All kernels of a lidar are compiled for that class, and those of other lidars contain nothing of it.
"""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import inlined_kernel, kernel, stage_kernel
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.workspace import Returns, Workspace
from hilsim.world.platforms.platform import Platform
from hilsim.world.scene.world import World


@inlined_kernel
def encode(plan: LidarPlan, packet: int, returns: Returns, counts: npt.NDArray[np.int64], offset: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write data packet ``packet`` to ``payload[offset : offset + plan.data_size]`` from the returns of its firing sequences.

    ``counts`` are those of a ``Workspace``.
    """
    plan.own.encode(plan.own, plan, packet, returns, counts, offset, payload)


@inlined_kernel
def sense(plan: LidarPlan, world: World, workspace: Workspace) -> None:
    """Write what the lidar reports beside ranges and reflectivities, after ``emulator.reception.detection.respond``."""
    plan.own.sense(plan.own, plan, world, workspace)


@kernel
def is_representable(plan: LidarPlan, channel: int, firing_ns: int, distance: int) -> bool:
    """Whether a packet can represent a return of a firing at device time ``firing_ns``; otherwise no return is sent."""
    fits: bool = plan.own.fits(plan.own, plan, channel, firing_ns, distance)
    return fits


@inlined_kernel
def order_of_returns(plan: LidarPlan) -> int:
    """``FIRINGS`` or ``COLUMNS`` of ``emulator.families.own``, or the records of a block."""
    order: int = plan.own.returns_order(plan.own)
    return order


@stage_kernel
def encode_info(plan: LidarPlan, platform: Platform, device_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write the position packet, the sensor information or the inertial packet assembled at ``device_ns`` to ``payload[: plan.info_size]``."""
    plan.own.encode_info(plan.own, plan, platform, device_ns, payload)
