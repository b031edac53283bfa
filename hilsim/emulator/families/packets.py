"""Fourth stage: returns → bytes of packets. This is the one place where kernels choose by ``LidarPlan.packet_format``; a format's own kernels are beside it.

A family may bring its kernels in the class of ``LidarPlan.own`` (``emulator.families.own``): all kernels of a lidar are then compiled for that class, and those
of other lidars contain nothing of it. What else differs between sensors is a property of the plan (``is_swept``), not a family.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, inlined_kernel, kernel, stage_kernel
from hilsim.emulator.plan import LidarPlan, PacketFormat
from hilsim.emulator.workspace import Returns, Workspace
from hilsim.families.cepton.packets import encode_points, fits_packet, write_information
from hilsim.families.velodyne.packets import encode_blocks, write_position
from hilsim.scene.world import World
from hilsim.vehicle.platform import Platform

_POINTS = constant(PacketFormat.CEPTON)
BLOCKS, FIRINGS, COLUMNS = constant(0), constant(1), constant(2)
"""Order of a packet's returns: blocks of records, one block after the other for each return; firing by firing with its returns side by side; column by column."""


@kernel
def _encode(
    own: Any, plan: LidarPlan, packet: int, returns: Returns, counts: npt.NDArray[np.int64], offset: int, payload: npt.NDArray[np.uint8]
) -> None:
    if own is not None:
        own.encode(own, plan, packet, returns, offset, payload)
    elif plan.packet_format == _POINTS:
        encode_points(plan, packet, returns, counts, offset, payload)
    else:
        encode_blocks(plan, packet, returns, offset, payload)


@inlined_kernel
def encode(plan: LidarPlan, packet: int, returns: Returns, counts: npt.NDArray[np.int64], offset: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write data packet ``packet`` to ``payload[offset : offset + plan.data_size]`` from the returns of its firing sequences.

    ``counts`` are those of a ``Workspace``.
    """
    _encode(plan.own, plan, packet, returns, counts, offset, payload)


@kernel
def _sense(own: Any, plan: LidarPlan, world: World, workspace: Workspace) -> None:
    if own is not None:
        own.sense(own, plan, world, workspace)


@inlined_kernel
def sense(plan: LidarPlan, world: World, workspace: Workspace) -> None:
    """Write what the lidar reports beside ranges and reflectivities, after ``emulator.reception.detection.respond``."""
    _sense(plan.own, plan, world, workspace)


@kernel
def copy_own(own: Any, source: Returns, source_sequence: int, target: Returns, target_sequence: int, channel: int) -> None:
    """Copy of a firing what ``sense`` wrote; ``own`` is that of the plan."""
    if own is not None:
        own.copy_return(own, source, source_sequence, target, target_sequence, channel)


@kernel
def is_representable(plan: LidarPlan, channel: int, firing_ns: int, distance: int) -> bool:
    """Whether a packet can represent a return of a firing at device time ``firing_ns``; otherwise no return is sent."""
    return plan.packet_format != _POINTS or fits_packet(plan, channel, firing_ns, distance)


@kernel
def _order(own: Any, packet_format: int) -> int:
    if own is not None:
        return COLUMNS
    return FIRINGS if packet_format == _POINTS else BLOCKS


@inlined_kernel
def order_of_returns(plan: LidarPlan) -> int:
    """``BLOCKS``, ``FIRINGS`` or ``COLUMNS``."""
    return _order(plan.own, plan.packet_format)


@kernel
def _encode_info(own: Any, plan: LidarPlan, platform: Platform, device_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    if own is not None:
        own.encode_info(own, plan, platform, device_ns, payload)
    elif plan.packet_format == _POINTS:
        write_information(plan, device_ns, payload)
    else:
        write_position(plan, platform, device_ns, payload)


@stage_kernel
def encode_info(plan: LidarPlan, platform: Platform, device_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write the position packet, the sensor information or the inertial packet assembled at ``device_ns`` to ``payload[: plan.info_size]``."""
    _encode_info(plan.own, plan, platform, device_ns, payload)
