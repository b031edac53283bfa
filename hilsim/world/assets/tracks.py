"""Track of an object's motion through a scene."""

import numpy as np

from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.tracks import PoseTrack, linear_track, smooth_track
from hilsim.world.scene.object_specs import MotionSpec


def motion_track(spec: MotionSpec, origin_m: Vector) -> PoseTrack:
    """Track of an object's frame in the world."""
    time_ns = np.array([round(waypoint.time_s * 1e9) for waypoint in spec.waypoints], dtype=np.int64)
    poses = [Pose(position_m=origin_m) @ mounting(waypoint.position_m, waypoint.rotation_deg) for waypoint in spec.waypoints]
    make = smooth_track if spec.interpolation == "smooth" else linear_track
    period_ns = int(time_ns[-1] - time_ns[0]) if spec.loop else 0
    return make(time_ns, [pose.position_m for pose in poses], [pose.orientation for pose in poses], period_ns)
