"""Poses of a Gazebo world (``Pose_V`` on ``/world/NAME/pose/info`` or ``dynamic_pose/info``) as snapshots.

A ``Pose_V`` has neither sizes nor velocities: its objects are those of a rig's scene, by their names, and the poses of models are in the world.
"""

from collections.abc import Iterator, Sequence

from hilsim.offline.snapshot import Motion, Snapshot, TrackedObject
from hilsim.parts.gazebo.subscriber import Subscriber
from hilsim.protocols.gazebo import decode_poses


def gazebo_snapshot(content: bytes, platform: str = "", objects: Sequence[str] | None = None, where: str = "Pose_V") -> Snapshot:
    """Read a ``Pose_V``.

    Args:
        content: Bytes of the message.
        platform: Name of the model that carries the sensors; empty: none.
        objects: Names of the models to take; None: all others. Of several poses with one name the first counts, as links often share theirs.
        where: Start of error messages.

    Raises:
        PacketError: it is no such message; the text names the field by its path.
    """
    time_ns, poses = decode_poses(content, where)
    first = {one.name: one for one in reversed(poses)}
    carrier = first.pop(platform, None) if platform else None
    chosen = first.values() if objects is None else [first[name] for name in objects if name in first]
    return Snapshot(
        time_ns=time_ns,
        platform=Motion(position_m=carrier.pose.position_m, orientation=carrier.pose.orientation) if carrier else None,
        objects=tuple(
            TrackedObject(id=one.id, name=one.name, motion=Motion(position_m=one.pose.position_m, orientation=one.pose.orientation))
            for one in chosen
            if one.name
        ),
    )


def gazebo_snapshots(
    subscriber: Subscriber, platform: str = "", objects: Sequence[str] | None = None, silence_s: float | None = None
) -> Iterator[Snapshot]:
    """Yield the snapshots of a topic's messages; arguments and errors as in ``gazebo_snapshot`` and ``Subscriber.messages``."""
    for number, content in enumerate(subscriber.messages(silence_s)):
        yield gazebo_snapshot(content, platform, objects, f"Pose_V {number}")
