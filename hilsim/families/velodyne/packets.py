"""Packets of a Velodyne: returns → blocks, and position packets with a receiver's sentence."""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import inlined_kernel, kernel
from hilsim.emulator.inertial import write_imu
from hilsim.emulator.plan import Gps, LidarPlan
from hilsim.emulator.position import write_sentence
from hilsim.emulator.schedule import first_sequence_of, stop_sequence_of
from hilsim.emulator.workspace import Returns
from hilsim.families.velodyne.protocol.data import encode_data_packet
from hilsim.families.velodyne.protocol.position import NMEA_SIZE, encode_position_packet
from hilsim.sensor.clock import DeviceClock, rig_from_device, stamp_us
from hilsim.vehicle.platform import Platform


@inlined_kernel
def encode_blocks(plan: LidarPlan, packet: int, returns: Returns, offset: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write data packet ``packet`` to ``payload[offset:]``."""
    first = first_sequence_of(plan, packet) if plan.stamp_offset_ns == 0 else stop_sequence_of(plan, packet) - plan.sequences_per_packet
    stamp = stamp_us(plan.clock, first * plan.sequence_ns + plan.stamp_offset_ns)
    encode_data_packet(returns.azimuth_cdeg, returns.distance, returns.reflectivity, stamp, plan.factory_bytes, payload[offset:])


@kernel
def _encode_position(clock: DeviceClock, gps: Gps, platform: Platform, device_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write the position packet assembled at ``device_ns`` to ``payload[:512]``."""
    sentence = np.empty(NMEA_SIZE, np.uint8)
    size = write_sentence(clock, gps, platform, rig_from_device(clock, device_ns), sentence)
    encode_position_packet(stamp_us(clock, device_ns), gps.pps_state, sentence, size, payload)


@inlined_kernel
def write_position(plan: LidarPlan, platform: Platform, device_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write the position packet assembled at ``device_ns`` to ``payload[:512]``, with a model's inertial words."""
    _encode_position(plan.clock, plan.gps, platform, device_ns, payload)
    if plan.has_imu:
        write_imu(plan, platform, rig_from_device(plan.clock, device_ns), payload)
