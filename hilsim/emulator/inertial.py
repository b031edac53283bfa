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
def _sensor_pose(plan: LidarPlan, platform: Platform, rig_ns: int) -> tuple[Vector, Quaternion]:
    """Position of the sensor's origin and orientation (world from sensor) at rig time ``rig_ns``."""
    (x, y, z), turn = platform_state(platform, rig_ns)
    dx, dy, dz = rotate(turn, (plan.channel_origin_m[0, 0], plan.channel_origin_m[0, 1], plan.channel_origin_m[0, 2]))
    mount = plan.mount_orientation
    return (x + dx, y + dy, z + dz), multiply(turn, (mount[0], mount[1], mount[2], mount[3]))


@stage_kernel
def felt_motion(plan: LidarPlan, platform: Platform, rig_ns: int) -> tuple[Vector, Vector]:
    """Rates and specific force of a sensor at rig time ``rig_ns``, in its own frame (x right, y forward, z up), as the mean of the last ``SPAN_NS``.

    Returns:
        Specific force in units of standard gravity: at rest and level (0, 0, 1). Rates of rotation in deg/s, right-handed about each axis.
    """
    half_ns = SPAN_NS // 2
    (ax, ay, az), before = _sensor_pose(plan, platform, rig_ns - 2 * half_ns)
    (bx, by, bz), middle = _sensor_pose(plan, platform, rig_ns - half_ns)
    (cx, cy, cz), now = _sensor_pose(plan, platform, rig_ns)
    half_s = half_ns / NS_PER_S
    scale = 1.0 / (half_s * half_s * STANDARD_GRAVITY_MPS2)
    force = rotate(conjugate(middle), ((ax - 2.0 * bx + cx) * scale, (ay - 2.0 * by + cy) * scale, (az - 2.0 * bz + cz) * scale + 1.0))
    w, x, y, z = multiply(conjugate(before), now)
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    sine = math.sqrt(x * x + y * y + z * z)
    rate = (2.0 * math.atan2(sine, w) / sine if sine > 0.0 else 2.0) * _DEG_PER_RAD / (2.0 * half_s)
    return force, (x * rate, y * rate, z * rate)
