"""Simulated gyroscopes and accelerometers of a lidar, computed from its platform's poses; families write them into their packets."""

import math

from hilsim.compilation.jit import kernel, stage_kernel
from hilsim.emulator.plan import LidarPlan
from hilsim.units import NS_PER_S
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.rotations import conjugate, multiply, rotate
from hilsim.world.platforms.platform import Platform, platform_state

STANDARD_GRAVITY_MPS2 = 9.80665
SPAN_NS = 20_000_000
"""Motion is computed from poses at the beginning, in the middle and at the end of so long, up to now: a vehicle that is being flown has no later ones."""
TEMPERATURE_C = 35.0
"""Temperature of each module, at rest in a public capture: 35 to 41 degrees."""
_DEG_PER_RAD = 180.0 / math.pi


@kernel
def origin_of(plan: LidarPlan) -> Vector:
    """Where the first channel's beam begins, in the platform's body frame."""
    return plan.channel_origin_m[0, 0], plan.channel_origin_m[0, 1], plan.channel_origin_m[0, 2]


@kernel
def _pose(plan: LidarPlan, platform: Platform, rig_ns: int, place_m: Vector) -> tuple[Vector, Quaternion]:
    """Position of a place in the body frame, and the sensor's orientation (world from sensor), at rig time ``rig_ns``."""
    (x, y, z), turn = platform_state(platform, rig_ns)
    dx, dy, dz = rotate(turn, place_m)
    mount = plan.mount_orientation
    return (x + dx, y + dy, z + dz), multiply(turn, (mount[0], mount[1], mount[2], mount[3]))


@stage_kernel
def felt_motion(plan: LidarPlan, platform: Platform, rig_ns: int, place_m: Vector) -> tuple[Vector, Vector]:
    """Rates and specific force at rig time ``rig_ns``, in a sensor's frame (x right, y forward, z up), as the mean of the last ``SPAN_NS``.

    ``place_m`` is where its inertial sensors are in the platform's body frame.

    Returns:
        Specific force in units of standard gravity: at rest and level (0, 0, 1). Rates of rotation in deg/s, right-handed about each axis.
    """
    half_ns = SPAN_NS // 2
    (ax, ay, az), before = _pose(plan, platform, rig_ns - 2 * half_ns, place_m)
    (bx, by, bz), middle = _pose(plan, platform, rig_ns - half_ns, place_m)
    (cx, cy, cz), now = _pose(plan, platform, rig_ns, place_m)
    half_s = half_ns / NS_PER_S
    scale = 1.0 / (half_s * half_s * STANDARD_GRAVITY_MPS2)
    force = rotate(conjugate(middle), ((ax - 2.0 * bx + cx) * scale, (ay - 2.0 * by + cy) * scale, (az - 2.0 * bz + cz) * scale + 1.0))
    w, x, y, z = multiply(conjugate(before), now)
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    sine = math.sqrt(x * x + y * y + z * z)
    rate = (2.0 * math.atan2(sine, w) / sine if sine > 0.0 else 2.0) * _DEG_PER_RAD / (2.0 * half_s)
    return force, (x * rate, y * rate, z * rate)
