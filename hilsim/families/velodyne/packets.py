"""Packets of a Velodyne: returns → blocks, and position packets with a receiver's sentence."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, stage_kernel
from hilsim.emulator.breaking.head_and_clock import falsified_us, pulse_state, thermal_status, write_received
from hilsim.emulator.families.own import family_kernels
from hilsim.emulator.inertial import TEMPERATURE_C, felt_motion, origin_of
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.schedule import first_sequence_of, stop_sequence_of
from hilsim.emulator.workspace import Returns
from hilsim.families.velodyne.protocol.data import RECORDS_PER_BLOCK, encode_data_packet
from hilsim.families.velodyne.protocol.position import NMEA_SIZE, THERMAL_OFFSET, encode_imu_module, encode_position_packet
from hilsim.sensor.clock import rig_from_device, stamp_us
from hilsim.world.platforms.platform import Platform

_RECORDS = constant(RECORDS_PER_BLOCK)


@kernel
def _encode_blocks(
    own: Any,
    plan: LidarPlan,
    packet: int,
    returns: Returns,
    counts: npt.NDArray[np.int64],  # noqa: ARG001 - any distance fits
    offset: int,
    payload: npt.NDArray[np.uint8],
) -> None:
    """Write data packet ``packet`` to ``payload[offset:]``."""
    first = first_sequence_of(plan, packet) if own.stamp_offset_ns == 0 else stop_sequence_of(plan, packet) - plan.sequences_per_packet
    device_ns = first * plan.sequence_ns + own.stamp_offset_ns
    stamp = falsified_us(plan.rare, plan, stamp_us(plan.clock, device_ns), device_ns)
    encode_data_packet(returns.azimuth_cdeg, returns.distance, returns.reflectivity, stamp, own.factory_bytes, payload[offset:])


@kernel
def _encode_position(plan: LidarPlan, platform: Platform, device_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write the position packet assembled at ``device_ns`` to ``payload[:512]``."""
    sentence, rig_ns = np.empty(NMEA_SIZE, np.uint8), rig_from_device(plan.clock, device_ns)
    size = write_received(plan.rare, plan, platform, rig_ns, sentence)
    stamp = falsified_us(plan.rare, plan, stamp_us(plan.clock, device_ns), device_ns)
    encode_position_packet(stamp, pulse_state(plan.rare, plan, rig_ns), sentence, size, payload)
    payload[THERMAL_OFFSET], payload[THERMAL_OFFSET + 1] = thermal_status(plan.rare, rig_ns)


@stage_kernel
def write_imu(plan: LidarPlan, platform: Platform, rig_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write the words of the three modules as they read at rig time ``rig_ns``; which module senses which axis: ``protocol.position``."""
    (right_g, forward_g, up_g), (about_right, about_forward, about_up) = felt_motion(plan, platform, rig_ns, origin_of(plan))
    encode_imu_module(0, about_right, TEMPERATURE_C, up_g, forward_g, payload)
    encode_imu_module(1, about_forward, TEMPERATURE_C, up_g, -right_g, payload)
    encode_imu_module(2, about_up, TEMPERATURE_C, -forward_g, -right_g, payload)


@kernel
def _write_position(own: Any, plan: LidarPlan, platform: Platform, device_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write the position packet assembled at ``device_ns`` to ``payload[:512]``, with a model's inertial words."""
    _encode_position(plan, platform, device_ns, payload)
    if own.has_imu:
        write_imu(plan, platform, rig_from_device(plan.clock, device_ns), payload)


@kernel
def _by_blocks(own: Any) -> int:  # noqa: ARG001 - argument of a family's own
    return _RECORDS


@family_kernels(encode=_encode_blocks, encode_info=_write_position, returns_order=_by_blocks)
class VelodynePlan(NamedTuple):
    """Kernel-side part of a Velodyne.

    Attributes:
        factory_bytes: Last two bytes of a data packet: return mode and product.
        stamp_offset_ns: Device time from a data packet's first firing to the firing that its stamp belongs to.
        has_imu: Whether position packets carry readings of the sensor's gyroscopes and accelerometers.
    """

    factory_bytes: int
    stamp_offset_ns: int
    has_imu: bool

    def allocate_returns(self, shape: tuple[int, int, int]) -> None:
        """Nothing: it reports ranges and reflectivities alone."""

    def packs_like(self, former: Any) -> bool:
        """Whether its packets end like the former plan's."""
        return bool(self.factory_bytes == former.factory_bytes)
