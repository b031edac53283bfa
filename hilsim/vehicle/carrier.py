"""What a sensor rides on: a pose track, and a wobble between the body and the sensor rig."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim._jit import kernel
from hilsim.geometry.frames import Quaternion, Vector
from hilsim.geometry.rotations import multiply, normalise, rotate
from hilsim.geometry.tracks import PoseTrack, track_state
from hilsim.vehicle.wobble import NO_WOBBLE, Wobble, wobble_pose


class Carrier(NamedTuple):
    """Where the sensor rig is, as a pure function of rig time; build with ``build_carrier``.

    Attributes:
        track: Of the body in the world.
        wobble: Of the sensor rig in the body.
    """

    track: PoseTrack
    wobble: Wobble


def build_carrier(track: PoseTrack, wobble: Wobble = NO_WOBBLE) -> Carrier:
    """A carrier; without a wobble the sensor rig stands still in the body."""
    return Carrier(track, wobble)


@kernel
def carrier_state(carrier: Carrier, time_ns: int) -> tuple[Vector, Quaternion]:
    """Position in metres and orientation (world from sensor rig) at rig time ``time_ns``."""
    (x, y, z), turn = track_state(carrier.track, time_ns)
    if carrier.wobble.amplitude_m > 0.0 or carrier.wobble.amplitude_rad > 0.0:
        offset, rocking = wobble_pose(carrier.wobble, time_ns)
        ox, oy, oz = rotate(turn, offset)
        x += ox
        y += oy
        z += oz
        turn = normalise(multiply(turn, rocking))
    return (x, y, z), turn


@kernel
def carrier_pose(carrier: Carrier, time_ns: int, position_m: npt.NDArray[np.float64], orientation: npt.NDArray[np.float64]) -> None:
    """Write the pose at rig time ``time_ns`` to ``position_m`` ``float64[3]`` and ``orientation`` ``float64[4]``, world from sensor rig."""
    (x, y, z), (qw, qx, qy, qz) = carrier_state(carrier, time_ns)
    position_m[0] = x
    position_m[1] = y
    position_m[2] = z
    orientation[0] = qw
    orientation[1] = qx
    orientation[2] = qy
    orientation[3] = qz
