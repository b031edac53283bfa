"""Deadlines of data packets."""

from hilsim.compilation.jit import kernel, stage_kernel
from hilsim.emulator.plan import LidarPlan
from hilsim.sensor.clock import device_from_rig, rig_from_device


@kernel
def data_deadline_ns(plan: LidarPlan, packet: int) -> int:
    """Rig time at which data packet ``packet`` is due: the end of its last firing sequence plus the model's latency."""
    return rig_from_device(plan.clock, (packet + 1) * plan.sequences_per_packet * plan.sequence_ns) + plan.data_latency_ns


@stage_kernel
def first_packet_due(plan: LidarPlan, rig_ns: int) -> int:
    """Index of the first data packet whose deadline is at or after ``rig_ns``."""
    packet_ns = plan.sequences_per_packet * plan.sequence_ns
    packet = max(device_from_rig(plan.clock, rig_ns - plan.data_latency_ns) // packet_ns - 2, 0)
    while data_deadline_ns(plan, packet) < rig_ns:
        packet += 1
    return packet
