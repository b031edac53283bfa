"""Coordinate frames of hilsim: axes, zero and sense of each.

========  ==========================================================================================================================
world     ENU: x east, y north, z up. Metres in float64, because UTM coordinates do not fit float32.
body      FLU: x forward, y left, z up. A vehicle at zero roll, pitch and yaw is level and faces east.
sensor    Velodyne's (VLP-16 manual 63-9243, section on the sensor's coordinates): x right, y forward, z up. Azimuth is measured from +y
          towards +x, which is clockwise seen from above; elevation from the xy plane upwards.
          Cepton's sensors have the same axes.
graphics  Frame of Cepton's AR note (https://developer.cepton.com/blog/AR_simulator), there "WGPU": x right, y up, z forward. Left-handed, so no
    rotation
          leads to it from any of the others; used only in ``world.geometry.overlay_frames``.
NED       autopilots' world: x north, y east, z down.
FRD       autopilots' body: x forward, y right, z down. Heading is the angle of x, clockwise from north.
========  ==========================================================================================================================

A sensor with zero mounting angles has azimuth 0 along body +x: ``BODY_FROM_SENSOR``.
"""

import math

from hilsim.compilation.jit import kernel

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

IDENTITY: Quaternion = (1.0, 0.0, 0.0, 0.0)

_HALF = math.sqrt(0.5)
BODY_FROM_SENSOR: Quaternion = (_HALF, 0.0, 0.0, -_HALF)
"""Rotation of the sensor frame of a level sensor facing forward: -90 degrees about z, so that sensor +y is body +x."""

NED_FROM_ENU: Quaternion = (0.0, _HALF, _HALF, 0.0)
"""Half a turn about the horizontal line to the north-east; its own inverse."""
FRD_FROM_FLU: Quaternion = (0.0, 1.0, 0.0, 0.0)
"""Half a turn about the forward axis; its own inverse."""


@kernel
def ned_from_enu(v: Vector) -> Vector:
    """Convert a vector from world axes (ENU) to an autopilot's (NED), or back."""
    east, north, up = v
    return north, east, -up


@kernel
def frd_from_flu(v: Vector) -> Vector:
    """Convert a vector from body axes (FLU) to an autopilot's (FRD), or back."""
    forward, left, up = v
    return forward, -left, -up


@kernel
def sensor_direction(azimuth_rad: float, elevation_rad: float) -> Vector:
    """Unit vector of a firing in the sensor frame."""
    level = math.cos(elevation_rad)
    return level * math.sin(azimuth_rad), level * math.cos(azimuth_rad), math.sin(elevation_rad)
