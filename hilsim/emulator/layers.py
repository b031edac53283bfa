"""Hits of the rays of some packets, and of the rays that continue behind transmitting surfaces, with any renderer.

``emulator.fused.trace`` is the same for one packet and the CPU's kernels, in one kernel.
"""

from collections.abc import Callable

from hilsim.emulator.hits import collect, find_cosines
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.workspace import LAYERS, Rays, Workspace
from hilsim.world.render.renderer import RaySlice
from hilsim.world.scene.world import World


def trace_with(cast: Callable[[RaySlice], None], plan: LidarPlan, world: World, workspace: Workspace) -> None:
    """Gather into a workspace's hits what its rays, which have been fired, meet.

    Args:
        cast: Casts rays into ``world``.
        plan: The lidar.
        world: World that it sees.
        workspace: Written.
    """
    workspace.hits.hit_count[:] = 0
    workspace.hits.flaw[:] = 0.0
    rays, beyond, count = workspace.rays, workspace.ahead, workspace.rays.range_m.size
    for _ in range(LAYERS):
        cast(_first_rays(plan, rays, count))
        find_cosines(world, rays, count)
        count = int(collect(plan.rare, plan, world, rays, count, workspace, beyond))
        if count == 0:
            break
        rays, beyond = beyond, workspace.behind if beyond is workspace.ahead else workspace.ahead


def _first_rays(plan: LidarPlan, rays: Rays, count: int) -> RaySlice:
    of = slice(0, count)
    return RaySlice(
        rays.origin_m[of], rays.direction[of], rays.time_ns[of], plan.cast_range_m, rays.range_m[of], rays.instance[of], rays.triangle[of]
    )
