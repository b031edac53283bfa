"""Motion of a sensor's carrier, from a file of poses."""

from pathlib import Path

from hilsim.read.background.job import Motion
from hilsim.world.assets.trajectories import load_trajectory
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import track_state

_UTC_FROM_NS = 10**17
"""Times from 1973 on are UTC; a recording's own time is smaller."""


def load_motion(path: Path, body_from_sensor: Pose) -> Motion:
    """Read the poses of a body that carries a sensor.

    Args:
        path: CSV or TUM file, in the format of a rig's trajectories. Times from 10^8 s on are UTC seconds since 1970, as in captures;
            smaller ones start with the capture, whose start is the file's first pose.
        body_from_sensor: Mounting of the sensor.

    Raises:
        AssetError: the file cannot be used.
    """
    track = load_trajectory(path, start_at_zero=False)
    if int(track.time_ns[0]) >= _UTC_FROM_NS:
        return Motion(track=track, is_utc=True, body_from_sensor=body_from_sensor)
    return Motion(track=load_trajectory(path), is_utc=False, body_from_sensor=body_from_sensor)


def first_pose(motion: Motion) -> Pose:
    """Pose of the sensor (world from sensor) at the first pose of the body, which is the pose of the map."""
    position, orientation = track_state(motion.track, int(motion.track.time_ns[0]))
    return Pose(position_m=position, orientation=orientation) @ motion.body_from_sensor
