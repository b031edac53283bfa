"""Second stage: what rays met → hits of their firings, and rays that go on behind what lets light pass."""

import math

import numpy as np
import numpy.typing as npt

from hilsim._jit import constant, kernel, stage_kernel
from hilsim.emulator.overlay import Backdrop, OverlayRule
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.workspace import Rays
from hilsim.render.truth import hit_normal, triangle_normal
from hilsim.rng import Purpose, uniform
from hilsim.scene.world import World
from hilsim.sensor.echoes import (
    BACKGROUND_ALONE,
    BACKGROUND_CHOSEN,
    COSINE,
    ENERGY,
    INSTANCE,
    RANGE,
    RAY,
    RETRO,
    TRIANGLE,
    Hits,
)

_GAP = constant(Purpose.GAP)
_SYNTHETIC_ONLY, _NEAREST = constant(OverlayRule.SYNTHETIC_ONLY), constant(OverlayRule.NEAREST)


GAP_SHIFT = 0.6180339887498949
"""Where the grid of openings lies, in cells from the world's zero. Not at it: on a fence at a round coordinate rounding would choose between two cells."""
_FAINTEST_SHARE = 1e-4
"""What of a firing's light is not followed on, if each of its rays carries as little."""
_STEP_M = 1e-3
"""How far behind a surface that it passed a ray goes on."""
_NEAREST_M = 0.01


@kernel
def _opening(
    seed: np.uint64,
    material: int,
    porosity: float,
    gap_m: float,
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
    ray: int,
    range_m: float,
) -> float:
    """1 where a ray goes through an opening of a porous surface, 0 where it meets it: openings are cells of the world, always the same ones."""
    cell = 0
    for axis in range(3):
        place = math.floor((origin_m[ray, axis] + range_m * direction[ray, axis]) / gap_m + GAP_SHIFT)
        cell = (cell << 21) ^ (place & 0x1FFFFF)
    return 1.0 if uniform(seed, material, cell, _GAP) < porosity else 0.0


@kernel
def _meets_background(rays: Rays, ray: int, sub_rays: int, rule: int, backdrop: Backdrop, hits: Hits) -> bool:
    """Whether a ray ends at the captured background; if so it is added to its firing's hits."""
    firing = rays.owner[ray] // sub_rays
    behind_m = backdrop.range_m[firing]
    hit_m = rays.travelled_m[ray] + float(rays.range_m[ray])
    if behind_m == np.inf or (rule == _NEAREST and hit_m < behind_m):
        return False
    at = hits.hit_count[firing]
    if at < hits.value.shape[1]:
        hits.value[firing, at, RANGE] = behind_m
        hits.value[firing, at, ENERGY] = rays.share[ray] * backdrop.ratio[firing] / (behind_m * behind_m)
        hits.value[firing, at, COSINE] = np.nan  # what was captured has no known surface
        hits.value[firing, at, RETRO] = 1.0 if backdrop.ratio[firing] > 1.0 else 0.0
        hits.what[firing, at, RAY] = rays.owner[ray] % sub_rays
        hits.what[firing, at, INSTANCE] = BACKGROUND_ALONE if rays.triangle[ray] < 0 else BACKGROUND_CHOSEN
        hits.what[firing, at, TRIANGLE] = -1
        hits.hit_count[firing] = at + 1
    return True


@stage_kernel
def collect(plan: LidarPlan, world: World, rays: Rays, count: int, backdrop: Backdrop, hits: Hits, beyond: Rays) -> int:
    """Add what rays met to their firings' hits, and let light go on behind what is open or transparent.

    Args:
        plan: The lidar.
        world: What was hit.
        rays: With ranges written by a renderer.
        count: How many of them.
        backdrop: What the background shows to each firing.
        hits: Added to.
        beyond: Written: rays that go on; not touched in a world in which everything is opaque.

    Returns:
        How many rays go on.
    """
    # Taken out of the loop: each look into a tuple inside would count references with an atomic instruction.
    sub_rays = plan.beam.share.size
    origin_m, direction, time_ns, owner = rays.origin_m, rays.direction, rays.time_ns, rays.owner
    share, travelled_m, range_m = rays.share, rays.travelled_m, rays.range_m
    instance, triangle = rays.instance, rays.triangle
    material, optics, corners, tile_count = world.material, world.optics, world.corners, world.tile_count
    hit_count, value, what = hits.hit_count, hits.value, hits.what
    room = value.shape[1]
    seed = plan.response.seed
    going_on = 0
    rule = plan.overlay.rule
    for ray in range(count):
        row = triangle[ray]
        if rule != _SYNTHETIC_ONLY and _meets_background(rays, ray, sub_rays, rule, backdrop, hits):
            continue
        if row < 0:
            continue
        nx, ny, nz = triangle_normal(corners, row)
        if instance[ray] >= tile_count:
            nx, ny, nz = hit_normal(world, instance[ray], row, time_ns[ray])
        porosity, gap_m = float(optics[material[row], 2]), float(optics[material[row], 4])
        if porosity > 0.0 and gap_m > 0.0 and instance[ray] < tile_count:
            porosity = _opening(seed, material[row], porosity, gap_m, origin_m, direction, ray, float(range_m[ray]))
        cosine = abs(nx * direction[ray, 0] + ny * direction[ray, 1] + nz * direction[ray, 2])
        surface = material[row]
        transmission = float(optics[surface, 3])
        hit_m = travelled_m[ray] + range_m[ray]
        far_m = max(hit_m, _NEAREST_M)
        firing = owner[ray] // sub_rays
        at = hit_count[firing]
        if at < room and porosity < 1.0:
            value[firing, at, RANGE] = hit_m
            value[firing, at, ENERGY] = share[ray] * (1.0 - porosity) * float(optics[surface, 0]) * cosine / (far_m * far_m)
            value[firing, at, COSINE] = cosine
            value[firing, at, RETRO] = optics[surface, 1]
            what[firing, at, RAY] = owner[ray] % sub_rays
            what[firing, at, INSTANCE] = instance[ray]
            what[firing, at, TRIANGLE] = row
            hit_count[firing] = at + 1
        passing = share[ray] * (porosity + (1.0 - porosity) * transmission * transmission)
        if passing * sub_rays < _FAINTEST_SHARE:
            continue
        step_m = range_m[ray] + _STEP_M
        for axis in range(3):
            beyond.origin_m[going_on, axis] = origin_m[ray, axis] + step_m * direction[ray, axis]
            beyond.direction[going_on, axis] = direction[ray, axis]
        beyond.time_ns[going_on] = time_ns[ray]
        beyond.owner[going_on] = owner[ray]
        beyond.share[going_on] = passing
        beyond.travelled_m[going_on] = travelled_m[ray] + step_m
        going_on += 1
    return going_on
