"""What carries the sensors: a pose track with a disturbance on top, as a pure function of rig time."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim._jit import kernel
from hilsim.geometry.frames import Quaternion, Vector
from hilsim.geometry.rotations import multiply, rotate
from hilsim.geometry.tracks import PoseTrack, track_state
from hilsim.vehicle.wobble import Wobble, WobbleSpec, make_wobble, wobble_state


class Carrier(NamedTuple):
    """Kernel-side carrier: world from body = track, then wobble."""

    track: PoseTrack
    wobble: Wobble


def make_carrier(track: PoseTrack, wobble: WobbleSpec | None, *, seed: int) -> Carrier:
    """A carrier on a track, disturbed or not."""
    return Carrier(track=track, wobble=make_wobble(wobble, seed=seed))


@kernel
def carrier_state(carrier: Carrier, time_ns: int) -> tuple[Vector, Quaternion]:
    """Position (m) and orientation of the sensor rig's body frame in the world at a rig time."""
    (px, py, pz), track_q = track_state(carrier.track, time_ns)
    offset, wobble_q = wobble_state(carrier.wobble, time_ns)
    ox, oy, oz = rotate(track_q, offset)
    return (px + ox, py + oy, pz + oz), multiply(track_q, wobble_q)


@kernel
def carrier_pose(carrier: Carrier, time_ns: int, position_m: npt.NDArray[np.float64], orientation: npt.NDArray[np.float64]) -> None:
    """Write ``carrier_state`` to ``position_m`` ``float64[3]`` and ``orientation`` ``float64[4]``."""
    (x, y, z), (qw, qx, qy, qz) = carrier_state(carrier, time_ns)
    position_m[0], position_m[1], position_m[2] = x, y, z
    orientation[0], orientation[1], orientation[2], orientation[3] = qw, qx, qy, qz
