"""What a sensor rides on: a pose track, or a vehicle that is simulated at this moment; and a wobble between the body and the sensor rig."""

from typing import NamedTuple

from hilsim._jit import kernel
from hilsim.geometry.frames import Quaternion, Vector
from hilsim.geometry.poses import Pose
from hilsim.geometry.rotations import multiply, normalise, rotate
from hilsim.geometry.tracks import PoseTrack, fixed_track, track_state
from hilsim.vehicle.disturbance import NO_WOBBLE, Wobble, wobble_pose
from hilsim.vehicle.live import LivePose, live_state, no_live_pose


class Carrier(NamedTuple):
    """Where the sensor rig is: on a track a pure function of rig time; build with ``build_carrier`` or ``live_carrier``.

    Attributes:
        track: Of the body in the world.
        wobble: Of the sensor rig in the body.
        is_live: The body follows ``live``, not the track.
        live: States of a vehicle that is simulated at this moment.
    """

    track: PoseTrack
    wobble: Wobble
    is_live: bool
    live: LivePose


def build_carrier(track: PoseTrack, wobble: Wobble = NO_WOBBLE) -> Carrier:
    """A carrier; without a wobble the sensor rig stands still in the body."""
    return Carrier(track, wobble, False, no_live_pose())  # noqa: FBT003 - fields by place


def live_carrier(live: LivePose, wobble: Wobble = NO_WOBBLE) -> Carrier:
    """A carrier whose body follows the states that another thread writes."""
    return Carrier(fixed_track(Pose()), wobble, True, live)  # noqa: FBT003 - fields by place


@kernel
def carrier_state(carrier: Carrier, time_ns: int) -> tuple[Vector, Quaternion]:
    """Position in metres and orientation (world from sensor rig) at rig time ``time_ns``."""
    (x, y, z), turn = live_state(carrier.live, time_ns) if carrier.is_live else track_state(carrier.track, time_ns)
    if carrier.wobble.amplitude_m > 0.0 or carrier.wobble.amplitude_rad > 0.0:
        offset, rocking = wobble_pose(carrier.wobble, time_ns)
        ox, oy, oz = rotate(turn, offset)
        x += ox
        y += oy
        z += oz
        turn = normalise(multiply(turn, rocking))
    return (x, y, z), turn
