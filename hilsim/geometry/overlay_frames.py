"""The mounting that Cepton's AR note calls "ground only", and poses as matrices.

Source: https://developer.cepton.com/blog/AR_simulator. The note's matrices as printed do not pitch the view: ``tests/unit/geometry/ar_note.py`` has them, and what
they do. ``ground_only_pose`` is what the note describes in words.
"""

import math

import numpy as np
import numpy.typing as npt

from hilsim.geometry.poses import Pose
from hilsim.geometry.rotations import about_axis, matrix_from_quaternion

Matrix = npt.NDArray[np.float64]
_RIGHT = (1.0, 0.0, 0.0)


def ground_only_pose(height_m: float, pitch_deg: float) -> Pose:
    """World from sensor of a sensor ``height_m`` above the world's origin and is tilted about its x axis (right) alone.

    Args:
        height_m: Of the sensor above the ground.
        pitch_deg: Positive with the nose down, as everywhere in hilsim; the note does not define it.

    At zero pitch the sensor's axes are the world's: it looks along world +y. The same as ``extrinsics((0, 0, height_m), (0, pitch_deg, 90))``.

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
