"""Frames of an SDF file that move, and what they carry."""

from dataclasses import dataclass, field

from hilsim.geometry.poses import Pose
from hilsim.geometry.rotations import normalise
from hilsim.geometry.tracks import PoseTrack, track_state
from hilsim.sdf.frames import SEPARATOR
from hilsim.sdf.specs import SdfLidar, SdfShape


@dataclass(frozen=True, kw_only=True)
class Carriage:
    """A frame that moves, and carries its contents.

    Attributes:
        stand: Where the file has it, in the world.
        track: Where it is.
    """

    stand: Pose
    track: PoseTrack

    def offset(self, pose: Pose) -> Pose:
        """In the frame: what the file has at ``pose`` in the world."""
        return self.stand.inverse() @ pose

    def pose_at(self, pose: Pose, time_ns: int) -> Pose:
        """Where something that the file has at ``pose`` is at a rig time."""
        position_m, orientation = track_state(self.track, time_ns)
        return Pose(position_m=position_m, orientation=normalise(orientation)) @ self.offset(pose)


@dataclass(frozen=True, kw_only=True)
class Carriages:
    """What moves.

    Attributes:
        actors: By name.
        models: By scoped name.
    """

    actors: dict[str, Carriage] = field(default_factory=dict)
    models: dict[str, Carriage] = field(default_factory=dict)

    def of(self, thing: SdfShape | SdfLidar) -> Carriage | None:
        """What carries a shape or lidar: its actor, or the innermost of its models that moves; None: it stands still."""
        if thing.actor:
            return self.actors.get(thing.actor)
        if not self.models:
            return None
        parts = thing.name.split(SEPARATOR)
        names = (SEPARATOR.join(parts[:length]) for length in range(len(parts) - 1, 0, -1))
        return next((self.models[name] for name in names if name in self.models), None)
