"""The mounting that Cepton's AR note calls "ground only", and conversion of poses to matrices.

Source: https://developer.cepton.com/blog/AR_simulator. The note's matrices as printed do not pitch the view (``tests/unit/geometry/ar_note.py`` contains them and
their
effect). ``ground_only_pose`` is what the note describes in words.
"""

import math

import numpy as np
import numpy.typing as npt

from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import about_axis, matrix_from_quaternion

Matrix = npt.NDArray[np.float64]
_RIGHT = (1.0, 0.0, 0.0)


def ground_only_pose(height_m: float, pitch_deg: float) -> Pose:
    """Pose (world from sensor) of a sensor ``height_m`` above the world's origin, rotated about its x axis (right) only.

    Args:
        height_m: Height of the sensor above the ground.
        pitch_deg: Pitch, positive nose down as everywhere in hilsim; the note does not define its sign.

    At zero pitch the sensor's axes are the world's: it faces world +y. The same as ``extrinsics((0, 0, height_m), (0, pitch_deg, 90))``.

    Raises:
        ValueError: a value is not finite.
    """
    return Pose(position_m=(0.0, 0.0, height_m), orientation=about_axis(_RIGHT, -math.radians(pitch_deg)))


def matrix_from_pose(pose: Pose) -> Matrix:
    """``float64[4, 4]`` with ``matrix @ (x, y, z, 1) == (*pose.transform((x, y, z)), 1)``."""
    matrix = np.eye(4)
    matrix[:3, :3] = matrix_from_quaternion(pose.orientation)
    matrix[:3, 3] = pose.position_m
    return matrix
