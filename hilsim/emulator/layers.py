"""Hits of the rays of several packets, and of the rays that continue behind transmitting surfaces, with any renderer.

``emulator.fused.trace`` is the same for one packet and the CPU's kernels, in one kernel.
"""

from collections.abc import Callable, Sequence

from hilsim.emulator.hits import collect, find_cosines
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.workspace import LAYERS, Rays, Workspace
from hilsim.render.renderer import RaySlice
from hilsim.scene.world import World


def trace_together(cast: Callable[[Sequence[RaySlice]], None], plan: LidarPlan, world: World, workspaces: Sequence[Workspace]) -> None:
    """Gather into each workspace's hits what its rays, which have been fired, meet.

    Args:
        cast: Casts rays into ``world``.
        plan: The lidar.
        world: World that it sees.
        workspaces: Written.
    """
    for workspace in workspaces:
        workspace.hits.hit_count[:] = 0
    going = [(workspace, workspace.rays, workspace.ahead, workspace.rays.range_m.size) for workspace in workspaces]
    for _ in range(LAYERS):
        cast([_first_rays(plan, rays, count) for _, rays, _, count in going])
        further = []
        for workspace, rays, beyond, count in going:
            find_cosines(world, rays, count)
            left = int(collect(plan, world, rays, count, workspace.backdrop, workspace.hits, beyond))
            if left > 0:
                further.append((workspace, beyond, workspace.behind if beyond is workspace.ahead else workspace.ahead, left))
        if not further:
            break
        going = further


def _first_rays(plan: LidarPlan, rays: Rays, count: int) -> RaySlice:
    of = slice(0, count)
    return RaySlice(
        rays.origin_m[of], rays.direction[of], rays.time_ns[of], plan.cast_range_m, rays.range_m[of], rays.instance[of], rays.triangle[of]
    )
