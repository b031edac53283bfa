"""The coordinate systems of Cepton's AR note, its matrices as printed.

Source: https://developer.cepton.com/blog/AR_simulator. The note names three systems: the lidar's (hilsim's sensor frame), WGPU's (hilsim's graphics
frame, see ``world.geometry.frames``) and the world, "the final output space". It prints three matrices, and the formula that joins them is a picture that
is not in its text. What follows from the numbers:

- ``T_coord`` takes (x, y, z) to (x, -z, y): a quarter turn about x, determinant 1. The lidar's and WGPU's axes, as the note names them, differ by
  swapping y and z, determinant -1 (``graphics_from_sensor``). So ``T_coord`` is neither that nor its inverse: taken from lidar to graphics it keeps
  forward and puts up down; taken from graphics to z-up it keeps up and puts forward backward. It is exactly right from a graphics frame whose z
  points *backward* (OpenGL's) to z-up.
- ``T_height`` adds h to y: right where y is up, so in a graphics frame.
- ``R_pitch`` turns about z. In a graphics frame, forward or backward, z is the line of sight: the picture rolls, and the view does not tilt. It
  would pitch in a frame of x forward, y up, z right.

``ground_only`` is their product in the order in which the note lists them, which is the only one in which all of them have a meaning: pitch and
height in a y-up frame, where the note's shader leaves its points, then over to z-up. ``world.geometry.overlay_frames.ground_only_pose`` is what
the note describes in words; hilsim uses that.
"""

import math

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]


def graphics_from_sensor() -> Matrix:
    """``float64[4, 4]``: from the sensor frame to the graphics frame by the axes the note names: y and z change places. It is its own inverse."""
    return np.array(
        [
            [1.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 1.0, 0.0],
            [0.0, 1.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def printed_coordinates() -> Matrix:
    """``float64[4, 4]``: ``T_coord`` as printed; the module's docstring says what it does."""
    return np.array(
        [
            [1.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, -1.0, 0.0],
            [0.0, 1.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def printed_height(height_m: float) -> Matrix:
    """``float64[4, 4]``: ``T_height`` as printed: ``height_m`` along y."""
    return np.array(
        [
            [1.0, 0.0, 0.0, 0.0],
            [0.0, 1.0, 0.0, height_m],
            [0.0, 0.0, 1.0, 0.0],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def printed_pitch(pitch_rad: float) -> Matrix:
    """``float64[4, 4]``: ``R_pitch`` as printed: ``pitch_rad`` about z, right-handed; in the graphics frame that is a roll."""
    cosine, sine = math.cos(pitch_rad), math.sin(pitch_rad)
    return np.array(
        [
            [cosine, -sine, 0.0, 0.0],
            [sine, cosine, 0.0, 0.0],
            [0.0, 0.0, 1.0, 0.0],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def ground_only(height_m: float, pitch_rad: float) -> Matrix:
    """``float64[4, 4]``: the note's transform of points from a y-up graphics frame to a z-up one, ``T_coord @ T_height @ R_pitch``.

    Kept to compare with the note's own results; its pitch is a roll.
    """
    return printed_coordinates() @ printed_height(height_m) @ printed_pitch(pitch_rad)
