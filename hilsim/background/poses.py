"""How what carried the sensor moved, from a file of poses."""

from pathlib import Path

from hilsim.assets.trajectories import load_trajectory
from hilsim.background.job import Motion
from hilsim.geometry.poses import Pose
from hilsim.geometry.tracks import track_state

_UTC_FROM_NS = 10**17
"""Times from 1973 on are UTC; a recording's own time does not get that far."""


def load_motion(path: Path, body_from_sensor: Pose) -> Motion:
    """The poses of a body that carries a sensor.

    Args:
        path: CSV or TUM file, as trajectories are given to a rig. Times from 10^8 s on are UTC seconds since 1970, as captures stamp;
            smaller ones begin with the capture, and then the file's first pose is where it begins.
        body_from_sensor: Mounting.

    Raises:
        AssetError: the file cannot be used.
    """
    track = load_trajectory(path, start_at_zero=False)
    if int(track.time_ns[0]) >= _UTC_FROM_NS:
        return Motion(track=track, is_utc=True, body_from_sensor=body_from_sensor)
    return Motion(track=load_trajectory(path), is_utc=False, body_from_sensor=body_from_sensor)


def first_pose(motion: Motion) -> Pose:
    """World from sensor at the first pose: where the map is."""
    position, orientation = track_state(motion.track, int(motion.track.time_ns[0]))
    return Pose(position_m=position, orientation=orientation) @ motion.body_from_sensor
