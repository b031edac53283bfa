"""Firing sequences and deadlines of data packets."""

from hilsim.compilation.jit import kernel, stage_kernel
from hilsim.emulator.plan import LidarPlan
from hilsim.sensor.clock import device_from_rig, rig_from_device


@kernel
def first_sequence_of(plan: LidarPlan, packet: int) -> int:
    """Index of the first firing sequence of data packet ``packet``."""
    return plan.origin_sequence + packet * plan.sequences_per_packet


@kernel
def packet_device_ns(plan: LidarPlan, packet: int) -> int:
    """Device time of the first firing of data packet ``packet``."""
    return first_sequence_of(plan, packet) * plan.sequence_ns


@kernel
def packet_start_ns(plan: LidarPlan, packet: int) -> int:
    """Rig time of the first firing of data packet ``packet``."""
    return rig_from_device(plan.clock, packet_device_ns(plan, packet))


@kernel
def data_deadline_ns(plan: LidarPlan, packet: int) -> int:
    """Rig time at which data packet ``packet`` is due: the end of its last firing sequence plus the model's latency."""
    return packet_start_ns(plan, packet + 1) + plan.data_latency_ns


@stage_kernel
def first_packet_due(plan: LidarPlan, rig_ns: int) -> int:
    """Index of the first data packet whose deadline is at or after ``rig_ns``."""
    packet_ns = plan.sequences_per_packet * plan.sequence_ns
    device_ns = device_from_rig(plan.clock, rig_ns - plan.data_latency_ns) - plan.origin_sequence * plan.sequence_ns
    packet = max(device_ns // packet_ns - 2, 0)
    while data_deadline_ns(plan, packet) < rig_ns:
        packet += 1
    return packet
