"""Fourth stage: returns → bytes of packets. This is the one place where kernels choose by ``LidarPlan.packet_format``; a format's own kernels are beside it.

What else differs between sensors is a property of the plan (``is_swept``), not a family.
"""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, inlined_kernel, kernel, stage_kernel
from hilsim.emulator.families.cepton_packets import encode_points, fits_packet, write_information
from hilsim.emulator.families.velodyne_packets import encode_blocks, write_position
from hilsim.emulator.plan import LidarPlan, PacketFormat
from hilsim.emulator.workspace import Returns
from hilsim.vehicle.platform import Platform

_POINTS = constant(PacketFormat.CEPTON)


@inlined_kernel
def encode(plan: LidarPlan, packet: int, returns: Returns, counts: npt.NDArray[np.int64], offset: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write data packet ``packet`` to ``payload[offset : offset + plan.data_size]`` from the returns of its firing sequences.

    ``counts`` are those of a ``Workspace``.
    """
    if plan.packet_format == _POINTS:
        encode_points(plan, packet, returns, counts, offset, payload)
    else:
        encode_blocks(plan, packet, returns, offset, payload)


@kernel
def is_representable(plan: LidarPlan, channel: int, firing_ns: int, distance: int) -> bool:
    """Whether a packet can represent a return of a firing at device time ``firing_ns``; otherwise no return is sent."""
    return plan.packet_format != _POINTS or fits_packet(plan, channel, firing_ns, distance)


@inlined_kernel
def has_blocks(plan: LidarPlan) -> bool:
    """Whether packets are blocks of records, one block after the other for each return; otherwise the returns of a firing are side by side."""
    return plan.packet_format != _POINTS


@stage_kernel
def encode_info(plan: LidarPlan, platform: Platform, device_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write the position packet or the sensor information assembled at ``device_ns`` to ``payload[: plan.info_size]``."""
    if plan.packet_format == _POINTS:
        write_information(plan, device_ns, payload)
    else:
        write_position(plan, platform, device_ns, payload)
