"""Where the movers of a world are: on tracks of their own, or at keys that are written while the world is rendered."""

from hilsim.compilation.jit import borrowing_kernel, inlined_kernel
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.live_keys import live_pose, live_sphere
from hilsim.world.geometry.tracks import keyed_pose, keyed_position
from hilsim.world.scene.world import World


@borrowing_kernel
def mover_pose(world: World, mover: int, time_ns: int) -> tuple[Vector, Quaternion]:
    """Position in metres and orientation (world from object) of a mover at a rig time; beyond the reach of rays where it is not seen."""
    first = world.key_first[mover]
    if first < 0:
        return live_pose(world.live, -1 - first, time_ns)
    return keyed_pose(
        world.key_time_ns,
        world.key_position_m,
        world.key_arrival_mps,
        world.key_departure_mps,
        world.key_orientation,
        first,
        world.key_count[mover],
        world.period_ns[mover],
        time_ns,
    )


@inlined_kernel
def mover_sphere(world: World, mover: int, first_ns: int, middle_ns: int, last_ns: int) -> tuple[float, float, float, float]:
    """Centre and radius (m) of a sphere that holds a mover from one rig time to another.

    The radius is below 0 where the mover is not seen at all, and infinite where it is not seen throughout.
    """
    first = world.key_first[mover]
    if first < 0:
        return live_sphere(world.live, -1 - first, world.radius_m[mover], world.speed_mps[mover], first_ns, last_ns)
    x, y, z = keyed_position(
        world.key_time_ns,
        world.key_position_m,
        world.key_arrival_mps,
        world.key_departure_mps,
        first,
        world.key_count[mover],
        world.period_ns[mover],
        middle_ns,
    )
    return x, y, z, world.radius_m[mover] + world.speed_mps[mover] * ((last_ns - middle_ns + 1) * 1e-9)
