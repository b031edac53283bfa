"""A platform: the body that carries sensors (on a pose track, or a simulated vehicle), and a disturbance between the body and the sensor rig."""

from typing import NamedTuple

from hilsim.compilation.jit import borrowing_kernel, kernel, placed
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import multiply, normalise, rotate
from hilsim.world.geometry.tracks import PoseTrack, fixed_track, track_state
from hilsim.world.platforms.disturbance import NO_DISTURBANCE, Disturbance, Keyframes, is_between, keyframes_at, pose_between
from hilsim.world.platforms.live import LivePose, live_state, no_live_pose


@placed
class Platform(NamedTuple):
    """Pose of the sensor rig: on a track a pure function of rig time; build with ``build_platform`` or ``live_platform``.

    Attributes:
        track: Pose of the body in the world.
        disturbance: Pose of the sensor rig in the body.
        is_live: Whether the body follows ``live``, not the track.
        live: States of a vehicle in simulation.
    """

    track: PoseTrack
    disturbance: Disturbance
    is_live: bool
    live: LivePose


def build_platform(track: PoseTrack, disturbance: Disturbance = NO_DISTURBANCE) -> Platform:
    """Build a platform; without a disturbance the sensor rig is fixed to the body."""
    return Platform(track, disturbance, False, no_live_pose())  # noqa: FBT003 - fields by place


def live_platform(live: LivePose, disturbance: Disturbance = NO_DISTURBANCE) -> Platform:
    """Build a platform whose body follows the states that another thread writes."""
    return Platform(fixed_track(Pose()), disturbance, True, live)  # noqa: FBT003 - fields by place


@borrowing_kernel
def platform_state(platform: Platform, time_ns: int) -> tuple[Vector, Quaternion]:
    """Position in metres and orientation (world from sensor rig) at rig time ``time_ns``."""
    return state_between(platform, keyframes_at(platform.disturbance, time_ns), time_ns)


@kernel
def next_keyframes(platform: Platform, keyframes: Keyframes, time_ns: int) -> Keyframes:
    """Keyframes of the disturbance around a rig time: ``keyframes`` where they still apply, else new ones."""
    return keyframes if is_between(platform.disturbance, keyframes, time_ns) else keyframes_at(platform.disturbance, time_ns)


@borrowing_kernel
def state_between(platform: Platform, keyframes: Keyframes, time_ns: int) -> tuple[Vector, Quaternion]:
    """``platform_state`` from the keyframes around ``time_ns`` (``next_keyframes``), for many times: keyframes change rarely."""
    (x, y, z), turn = live_state(platform.live, time_ns) if platform.is_live else track_state(platform.track, time_ns)
    if platform.disturbance.amplitude_m > 0.0 or platform.disturbance.amplitude_rad > 0.0:
        offset, rocking = pose_between(platform.disturbance, keyframes, time_ns)
        ox, oy, oz = rotate(turn, offset)
        x += ox
        y += oy
        z += oz
        turn = normalise(multiply(turn, rocking))
    return (x, y, z), turn
