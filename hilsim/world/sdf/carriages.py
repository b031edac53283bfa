"""Moving frames of an SDF file, and their contents."""

from dataclasses import dataclass, field

from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import normalise
from hilsim.world.geometry.tracks import PoseTrack, track_state
from hilsim.world.sdf.frames import SEPARATOR
from hilsim.world.sdf.specs import SdfLidar, SdfShape


@dataclass(frozen=True, kw_only=True)
class Carriage:
    """A moving frame.

    Attributes:
        stand: Pose of the frame in the file, in the world.
        track: Track of the frame.
    """

    stand: Pose
    track: PoseTrack

    def offset(self, pose: Pose) -> Pose:
        """Pose, in the frame, of an object that has ``pose`` in the file's world."""
        return self.stand.inverse() @ pose

    def pose_at(self, pose: Pose, time_ns: int) -> Pose:
        """Pose at a rig time of an object that has ``pose`` in the file's world."""
        position_m, orientation = track_state(self.track, time_ns)
        return Pose(position_m=position_m, orientation=normalise(orientation)) @ self.offset(pose)


@dataclass(frozen=True, kw_only=True)
class Carriages:
    """Moving frames of a file.

    Attributes:
        actors: Frames of actors, by name.
        models: Frames of models, by scoped name.
    """

    actors: dict[str, Carriage] = field(default_factory=dict)
    models: dict[str, Carriage] = field(default_factory=dict)

    def of(self, thing: SdfShape | SdfLidar) -> Carriage | None:
        """Frame of a shape or lidar: its actor's, or that of the innermost of its models that moves; None if it is static."""
        if thing.actor:
            return self.actors.get(thing.actor)
        if not self.models:
            return None
        parts = thing.name.split(SEPARATOR)
        names = (SEPARATOR.join(parts[:length]) for length in range(len(parts) - 1, 0, -1))
        return next((self.models[name] for name in names if name in self.models), None)
