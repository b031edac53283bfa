"""Continuation of a lidar that changes: with its next firing, its head where it is, and its packets numbered on."""

from typing import Any, NamedTuple

import numpy as np

from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.schedule import first_packet_from, first_sequence_of
from hilsim.sensor.clock import continued_offset_ns, device_from_rig, rig_from_device
from hilsim.sensor.field_of_view import begun_at
from hilsim.sensor.head import Head, continued_head, turns_alike


class Continuation(NamedTuple):
    """Values that a lidar's plan takes over from the plan before it.

    Attributes:
        origin_packet: ``LidarPlan.origin_packet``.
        origin_sequence: ``LidarPlan.origin_sequence``.
        head: ``LidarPlan.head``; None: of the setting.
        stamp_offset_ns: ``DeviceClock.stamp_offset_ns``; None: of the setting.
        frame_sequence: ``frame_sequence`` of the family's own plan; None: of the setting.
    """

    origin_packet: int = 0
    origin_sequence: int = 0
    head: Head | None = None
    stamp_offset_ns: int | None = None
    frame_sequence: int | None = None

    def applied_to(self, plan: LidarPlan) -> LidarPlan:
        """The plan with what it takes over."""
        if self.head is not None:
            plan = plan._replace(head=self.head)
        if self.stamp_offset_ns is not None:
            plan = plan._replace(clock=plan.clock._replace(stamp_offset_ns=self.stamp_offset_ns))
        if self.frame_sequence is not None:
            plan = plan._replace(own=plan.own._replace(frame_sequence=self.frame_sequence))
        if self == AT_START:
            return plan
        view = None if plan.field_of_view is None else begun_at(plan.field_of_view, plan.head, self.origin_sequence)
        return plan._replace(origin_packet=self.origin_packet, origin_sequence=self.origin_sequence, field_of_view=view)


AT_START = Continuation()
"""Continuation of a lidar that begins when it is switched on."""


def continue_from(former: LidarPlan, plan: LidarPlan, at_ns: int) -> tuple[int, Continuation]:
    """Beginning of a changed lidar, and the values that it takes over.

    A change of the returns reported begins with the next packet, whose last bytes name them; so does one of what a limited field of view produces,
    because the packets are filled with it. Any other one begins with the next firing. A sensor that counts its turns (``frame_sequence``) and sends other packets
    has been initialised anew: it begins with the first turn of its new mode.

    Args:
        former: The plan before.
        plan: The changed plan, as its setting makes it.
        at_ns: Rig time from which it is to be in force.

    Returns:
        The rig time at which it begins, and what it takes over.
    """
    if _counts_turns(former) and not _sends_alike(former, plan):
        return _initialised(former, plan, at_ns)
    packet, origin = int(former.origin_packet), int(former.origin_sequence)
    if not _packs_alike(former, plan):
        packet, origin, at_ns = _next_packet(former, at_ns)
    device_ns = int(device_from_rig(former.clock, at_ns))
    head, offset_ns = continued_head(former.head, plan.head, device_ns), continued_offset_ns(former.clock, plan.clock, device_ns)
    return at_ns, Continuation(packet, origin, head, offset_ns, int(former.own.frame_sequence) if _counts_turns(former) else None)


def rehearse(plan: LidarPlan) -> None:
    """Load or compile what ``continue_from`` needs for a lidar that becomes another one."""
    continue_from(plan, plan, 0)
    _next_packet(plan, 0)


def _next_packet(plan: LidarPlan, at_ns: int) -> tuple[int, int, int]:
    """First data packet that begins at or after a rig time: its index, its first firing sequence, and the rig time of that."""
    packet = first_packet_from(plan, at_ns)
    first = int(first_sequence_of(plan, packet))
    return packet, first, int(rig_from_device(plan.clock, first * plan.sequence_ns))


def _counts_turns(plan: LidarPlan) -> bool:
    """Whether packets have the number of their turn."""
    return hasattr(plan.own, "frame_sequence")


def _initialised(former: LidarPlan, plan: LidarPlan, at_ns: int) -> tuple[int, Continuation]:
    """Beginning of a sensor that counts its turns anew, from the first one that begins after the last packet of before."""
    packet, _, at_ns = _next_packet(former, at_ns)
    turn_ns = plan.own.columns_per_frame * plan.sequence_ns
    origin = -(-int(device_from_rig(plan.clock, at_ns)) // turn_ns) * int(plan.own.columns_per_frame)
    return at_ns, Continuation(packet, origin, frame_sequence=origin)


def _sends_alike(former: LidarPlan, plan: LidarPlan) -> bool:
    """Whether two plans of a sensor that counts its turns send the same packets, but for what they measure."""
    return (
        _is_equal(former.clock._replace(stamp_offset_ns=0), plan.clock._replace(stamp_offset_ns=0))
        and former.sequence_ns == plan.sequence_ns
        and _is_equal(former.own._replace(frame_sequence=0), plan.own._replace(frame_sequence=0))
    )


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return all(map(_is_equal, one, other))
    return bool(np.array_equal(one, other))


def _packs_alike(former: LidarPlan, plan: LidarPlan) -> bool:
    return (
        former.sequences_per_packet == plan.sequences_per_packet
        and getattr(plan.own, "packs_like", _always)(former.own)
        and np.array_equal(former.choice, plan.choice)
        and _produces_alike(former, plan)
    )


def _always(former: Any) -> bool:  # noqa: ARG001 - as of a family's own
    return True


def _produces_alike(former: LidarPlan, plan: LidarPlan) -> bool:
    """Whether both plans leave out the same blocks."""
    before, after = former.field_of_view, plan.field_of_view
    if before is None or after is None or not (before.is_limited or after.is_limited):
        return True
    has_same_edges = (before.start_cdeg, before.width_cdeg) == (after.start_cdeg, after.width_cdeg)
    return has_same_edges and turns_alike(former.head, plan.head)
