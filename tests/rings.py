"""What waits in rings, for tests."""

from dataclasses import dataclass

from hilsim.transmit.ring import Rings, depth


@dataclass(frozen=True, kw_only=True)
class QueuedDatagram:
    """A copy of a slot: times on CLOCK_MONOTONIC, the payload's used bytes."""

    deadline_ns: int
    pose_ns: int
    payload: bytes


def peek(rings: Rings, flow: int) -> list[QueuedDatagram]:
    """Copies of what waits in a flow's ring, in order; exact only while the sending loop does not take from it."""
    slots = rings.deadline_ns.shape[1]
    head = int(rings.head[flow, 0])
    return [
        QueuedDatagram(
            deadline_ns=int(rings.deadline_ns[flow, slot]),
            pose_ns=int(rings.pose_ns[flow, slot]),
            payload=rings.payload[flow, slot, : rings.size[flow, slot]].tobytes(),
        )
        for slot in (count % slots for count in range(head, head + int(depth(rings, flow))))
    ]
