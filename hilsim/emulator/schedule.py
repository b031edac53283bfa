"""Firing sequences and deadlines of data packets."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel, stage_kernel
from hilsim.emulator.plan import LidarPlan
from hilsim.sensor.clock import device_from_rig, rig_from_device
from hilsim.sensor.field_of_view import FieldOfView, produced_before, produced_block, write_sequences


@kernel
def _first_block(view: FieldOfView, plan: LidarPlan, packet: int) -> int:
    """Number of blocks that are produced from the origin of a limited field of view until a packet begins."""
    return (packet - plan.origin_packet) * (plan.sequences_per_packet // view.block_sequences)


@kernel
def _is_filled(view: FieldOfView, plan: LidarPlan, packet: int) -> bool:
    """Whether a packet consists of what a limited field of view lets through; no packet before the origin is ever sent."""
    return view.is_limited and packet >= plan.origin_packet


@stage_kernel
def _first_produced(view: FieldOfView, plan: LidarPlan, packet: int) -> int:
    return produced_block(view, plan.head, _first_block(view, plan, packet)) * view.block_sequences


@stage_kernel
def _stop_produced(view: FieldOfView, plan: LidarPlan, packet: int) -> int:
    return (produced_block(view, plan.head, _first_block(view, plan, packet + 1) - 1) + 1) * view.block_sequences


@stage_kernel
def _write_produced(view: FieldOfView, plan: LidarPlan, packet: int, sequence: npt.NDArray[np.int64]) -> None:
    write_sequences(view, plan.head, _first_block(view, plan, packet), sequence)


@kernel
def _sent_sequence(own: Any, plan: LidarPlan, packet: int) -> int:
    """First firing sequence of a packet of a family that finds it itself; -1 for another one."""
    sequence: int = own.first_sequence(own, plan, packet)
    return sequence


@kernel
def _sent_before(own: Any, plan: LidarPlan, device_ns: int) -> int:
    """A packet of such a family that begins at or before a device time; -1 for another one."""
    packet: int = own.packet_before(own, plan, device_ns)
    return packet


@kernel
def first_sequence_of(plan: LidarPlan, packet: int) -> int:
    """Index of the first firing sequence of data packet ``packet``."""
    sent = _sent_sequence(plan.own, plan, packet)
    return sent if sent >= 0 else _first_sequence(plan.field_of_view, plan, packet)


@kernel
def _first_sequence(view: FieldOfView | None, plan: LidarPlan, packet: int) -> int:
    if view is not None and _is_filled(view, plan, packet):
        return _first_produced(view, plan, packet)
    return plan.origin_sequence + (packet - plan.origin_packet) * plan.sequences_per_packet


@kernel
def stop_sequence_of(plan: LidarPlan, packet: int) -> int:
    """Index of the firing sequence after the last one of data packet ``packet``."""
    sent = _sent_sequence(plan.own, plan, packet)
    return sent + plan.sequences_per_packet if sent >= 0 else _stop_sequence(plan.field_of_view, plan, packet)


@kernel
def _stop_sequence(view: FieldOfView | None, plan: LidarPlan, packet: int) -> int:
    if view is not None and _is_filled(view, plan, packet):
        return _stop_produced(view, plan, packet)
    return plan.origin_sequence + (packet + 1 - plan.origin_packet) * plan.sequences_per_packet


@kernel
def write_sequences_of(view: FieldOfView | None, plan: LidarPlan, packet: int, sequence: npt.NDArray[np.int64]) -> None:
    """Write the indices of the firing sequences of data packets from ``packet`` on, as many as fit into ``int64[n * sequences_per_packet]``.

    ``view`` is the plan's.
    """
    if view is not None and _is_filled(view, plan, packet):
        _write_produced(view, plan, packet, sequence)
    else:
        for begin in range(0, sequence.size, plan.sequences_per_packet):
            first = first_sequence_of(plan, packet + begin // plan.sequences_per_packet)
            for row in range(plan.sequences_per_packet):
                sequence[begin + row] = first + row


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
    return rig_from_device(plan.clock, stop_sequence_of(plan, packet) * plan.sequence_ns) + plan.data_latency_ns


@stage_kernel
def write_deadlines(plan: LidarPlan, first: int, deadline_ns: npt.NDArray[np.int64]) -> None:
    """Write the deadlines of data packets from ``first`` on, ``int64[n]``: each call from Python takes as long as to render a third of a packet."""
    for row in range(deadline_ns.size):
        deadline_ns[row] = data_deadline_ns(plan, first + row)


@kernel
def _packet_before(plan: LidarPlan, device_ns: int) -> int:
    """A packet that begins at or before a device time, not long before."""
    sent = _sent_before(plan.own, plan, device_ns)
    if sent >= 0:
        return sent
    return _begun_before(plan.field_of_view, plan, device_ns)


@kernel
def _begun_before(view: FieldOfView | None, plan: LidarPlan, device_ns: int) -> int:
    since_ns = device_ns - plan.origin_sequence * plan.sequence_ns
    packet_ns = plan.sequences_per_packet * plan.sequence_ns
    if view is None or not view.is_limited or since_ns < 0:
        return plan.origin_packet + since_ns // packet_ns
    blocks = produced_before(view, plan.head, device_ns)
    packet = plan.origin_packet + blocks // (plan.sequences_per_packet // view.block_sequences)
    step = 1
    while step > 0:  # in doubling and halving steps: some hundred packets may follow within a turn
        if packet_device_ns(plan, packet + step) <= device_ns:
            packet += step
            step *= 2
        else:
            step //= 2
    return packet


@stage_kernel
def first_packet_due(plan: LidarPlan, rig_ns: int) -> int:
    """Index of the first data packet whose deadline is at or after ``rig_ns``."""
    packet = max(_packet_before(plan, device_from_rig(plan.clock, rig_ns - plan.data_latency_ns)) - 2, 0)
    while data_deadline_ns(plan, packet) < rig_ns:
        packet += 1
    return packet


@stage_kernel
def first_packet_from(plan: LidarPlan, rig_ns: int) -> int:
    """Index of the first data packet whose first firing is at or after a rig time."""
    packet = max(_packet_before(plan, device_from_rig(plan.clock, rig_ns)) - 1, 0)
    while packet_start_ns(plan, packet) < rig_ns:
        packet += 1
    return packet
