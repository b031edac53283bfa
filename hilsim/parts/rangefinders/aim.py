"""Beams of a range sensor: rays in the world from the platform's poses, the rig's mounting and the azimuths requested by the sensor."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.parts.rangefinders.specs import RangefinderSpec
from hilsim.world.geometry.frames import Quaternion, Vector, sensor_direction
from hilsim.world.geometry.poses import extrinsics
from hilsim.world.geometry.rotations import multiply, rotate
from hilsim.world.platforms.platform import Platform, platform_state


class RangefinderRays(NamedTuple):
    """Rays as arguments of a ``world.render.renderer.Renderer``.

    Attributes:
        origin_m: ``float64[n, 3]`` in the world.
        direction: ``float32[n, 3]``, unit vectors in the world.
    """

    origin_m: npt.NDArray[np.float64]
    direction: npt.NDArray[np.float32]


@kernel
def fill_rays(
    position_m: npt.NDArray[np.float64],
    orientation: npt.NDArray[np.float64],
    mount_position_m: Vector,
    body_from_sensor: Quaternion,
    azimuth_rad: npt.NDArray[np.float64],
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
) -> None:
    """Write rays.

    Args:
        position_m: ``float64[n, 3]``, position of the body in the world at each ray's own time.
        orientation: ``float64[n, 4]``, world from body.
        mount_position_m: Position of the sensor in the body.
        body_from_sensor: Orientation of the sensor in the body.
        azimuth_rad: ``float64[n]`` in the sensor's frame.
        origin_m: ``float64[n, 3]``, output.
        direction: ``float32[n, 3]``, output.
    """
    for ray in range(azimuth_rad.size):
        body = (orientation[ray, 0], orientation[ray, 1], orientation[ray, 2], orientation[ray, 3])
        ox, oy, oz = rotate(body, mount_position_m)
        origin_m[ray, 0] = position_m[ray, 0] + ox
        origin_m[ray, 1] = position_m[ray, 1] + oy
        origin_m[ray, 2] = position_m[ray, 2] + oz
        direction[ray, 0], direction[ray, 1], direction[ray, 2] = rotate(multiply(body, body_from_sensor), sensor_direction(azimuth_rad[ray], 0.0))


@kernel
def fill_poses(platform: Platform, time_ns: npt.NDArray[np.int64], position_m: npt.NDArray[np.float64], orientation: npt.NDArray[np.float64]) -> None:
    """Write a platform's ``float64[n, 3]`` positions and ``float64[n, 4]`` orientations (world from platform) at ``int64[n]`` rig times."""
    for ray in range(time_ns.size):
        (x, y, z), (qw, qx, qy, qz) = platform_state(platform, time_ns[ray])
        position_m[ray, 0], position_m[ray, 1], position_m[ray, 2] = x, y, z
        orientation[ray, 0], orientation[ray, 1], orientation[ray, 2], orientation[ray, 3] = qw, qx, qy, qz


def platform_rays(spec: RangefinderSpec, platform: Platform, time_ns: npt.NDArray[np.int64], azimuth_deg: npt.NDArray[np.float64]) -> RangefinderRays:
    """Rays of a range sensor on a platform, at ``int64[n]`` rig times and ``float64[n]`` azimuths."""
    position_m, orientation = np.empty((time_ns.size, 3)), np.empty((time_ns.size, 4))
    fill_poses(platform, time_ns, position_m, orientation)
    return rangefinder_rays(spec, position_m, orientation, azimuth_deg)


def rangefinder_rays(
    spec: RangefinderSpec, position_m: npt.NDArray[np.float64], orientation: npt.NDArray[np.float64], azimuth_deg: npt.NDArray[np.float64]
) -> RangefinderRays:
    """Rays of a range sensor; ``float64[n, 3]`` and ``float64[n, 4]`` are the body's poses at the rays' times, ``float64[n]`` the azimuths requested by the sensor."""
    mount = extrinsics(spec.mount_position_m, spec.mount_rotation_deg)
    rays = RangefinderRays(np.empty((azimuth_deg.size, 3)), np.empty((azimuth_deg.size, 3), np.float32))
    fill_rays(position_m, orientation, mount.position_m, mount.orientation, np.radians(azimuth_deg), *rays)
    return rays
