"""Second stage: what rays met → hits of their firings, and rays that go on behind what lets light pass, or from a mirror."""

import math

import numpy as np

from hilsim.compilation.jit import borrowing_kernel, constant, inlined_kernel, kernel, stage_kernel
from hilsim.emulator.overlay import Backdrop, OverlayRule
from hilsim.emulator.plan import LidarPlan, Rare
from hilsim.emulator.sole_surfaces import NEAREST_HIT_M, meet_sole_surfaces
from hilsim.emulator.workspace import Rays, Workspace
from hilsim.rng import Purpose, uniform
from hilsim.sensor.echoes import (
    BACKGROUND_ALONE,
    BACKGROUND_CHOSEN,
    COSINE,
    ENERGY,
    INSTANCE,
    MIRRORED,
    RANGE,
    RAY,
    RETRO,
    TRIANGLE,
    Hits,
)
from hilsim.world.geometry.frames import Vector
from hilsim.world.render.surfaces import flaw_at, mirrored_share, place_on_mover, returned, texture_noise, within
from hilsim.world.render.truth import hit_normal
from hilsim.world.scene.materials import Optic
from hilsim.world.scene.world import World

_GAP = constant(Purpose.GAP)
_POROSITY, _TRANSMISSION, _GAP_SIZE = constant(Optic.POROSITY), constant(Optic.TRANSMISSION), constant(Optic.GAP)
_RETRO, _MIRROR, _GLOSS = constant(Optic.RETRO), constant(Optic.MIRROR), constant(Optic.GLOSS)
_TEXTURE, _TEXTURE_SIZE, _RELIEF, _REFLECTIVITY = (
    constant(Optic.TEXTURE),
    constant(Optic.TEXTURE_SIZE),
    constant(Optic.RELIEF),
    constant(Optic.REFLECTIVITY),
)
_FLAW, _FLAW_SIZE = constant(Optic.FLAW), constant(Optic.FLAW_SIZE)
_SYNTHETIC_ONLY, _NEAREST = constant(OverlayRule.SYNTHETIC_ONLY), constant(OverlayRule.NEAREST)


GAP_SHIFT = 0.6180339887498949
"""Where the grid of openings lies, in cells from the world's zero. Not at it: on a fence at a round coordinate rounding would choose between two cells."""
FAINTEST_SHARE = 1e-4
"""Share of a firing's light below which its rays are not traced further."""
STEP_M = 1e-3
"""Distance from a surface at which a ray that goes on from there begins."""


@kernel
def _opening(
    seed: np.uint64,
    porosity: float,
    gap_m: float,
    place_m: Vector,
) -> float:
    """1 where a ray goes through an opening of a porous surface, 0 where it meets it: openings are cells of the object, always the same ones."""
    cell = 0
    for along_m in place_m:
        cell = (cell << 21) ^ (math.floor(along_m / gap_m + GAP_SHIFT) & 0x1FFFFF)
    return 1.0 if uniform(seed, 0, cell, _GAP) < porosity else 0.0


@borrowing_kernel
def _meets_background(rays: Rays, ray: int, rule: int, backdrop: Backdrop, hits: Hits) -> bool:
    """Whether a ray ends at the captured background; if so it is added to its firing's hits."""
    firing = rays.firing[ray]
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
        hits.what[firing, at, RAY] = rays.sub_ray[ray]
        hits.what[firing, at, INSTANCE] = BACKGROUND_ALONE if rays.triangle[ray] < 0 else BACKGROUND_CHOSEN
        hits.what[firing, at, TRIANGLE] = -1
        hits.hit_count[firing] = at + 1
    return True


@kernel
def find_cosines(world: World, rays: Rays, count: int) -> None:
    """Write ``cosine`` of the first ``count`` rays, for renderers that do not."""
    for ray in range(count):
        x, y, z = hit_normal(world, rays.instance[ray], rays.triangle[ray], rays.time_ns[ray])
        rays.cosine[ray] = abs(x * rays.direction[ray, 0] + y * rays.direction[ray, 1] + z * rays.direction[ray, 2])


@inlined_kernel
def _go_on(rays: Rays, ray: int, direction: Vector, share: float, sub_ray: int, beyond: Rays, at: int) -> None:
    """Write the continuation of a ray behind its hit to row ``at`` of ``beyond``."""
    step_m = rays.range_m[ray] + STEP_M
    for axis in range(3):
        beyond.origin_m[at, axis] = rays.origin_m[ray, axis] + rays.range_m[ray] * rays.direction[ray, axis] + STEP_M * direction[axis]
        beyond.direction[at, axis] = direction[axis]
    beyond.time_ns[at] = rays.time_ns[ray]
    beyond.firing[at] = rays.firing[ray]
    beyond.sub_ray[at] = sub_ray
    beyond.share[at] = share
    beyond.travelled_m[at] = rays.travelled_m[ray] + step_m


@borrowing_kernel
def _mirrored(world: World, rays: Rays, ray: int) -> Vector:
    """Direction of a ray after a mirror."""
    dx, dy, dz = float(rays.direction[ray, 0]), float(rays.direction[ray, 1]), float(rays.direction[ray, 2])
    nx, ny, nz = hit_normal(world, rays.instance[ray], rays.triangle[ray], rays.time_ns[ray])
    along = 2.0 * (dx * nx + dy * ny + dz * nz)
    return dx - along * nx, dy - along * ny, dz - along * nz


@inlined_kernel
def _onward(transmission: float, straight: float, mirror: float, porosity: float, share: float, travelled_m: float) -> tuple[float, float]:
    """Shares of the light that go on through a surface, and from its mirror image."""
    through = transmission * (1.0 - mirror) / max(1.0 - straight, 1e-6)
    passing = share * (porosity + (1.0 - porosity) * through * through)
    thrown = share * (1.0 - porosity) * mirror * mirror
    # Behind the first surface a ray goes one way alone, the brighter one: else a ray between two panes would become sixteen.
    if travelled_m > 0.0 and passing < thrown:
        passing = 0.0
    elif travelled_m > 0.0:
        thrown = 0.0
    return passing, thrown


@stage_kernel
def collect(rare: Rare | None, plan: LidarPlan, world: World, rays: Rays, count: int, workspace: Workspace, beyond: Rays) -> int:  # noqa: C901, PLR0912, PLR0915 - one loop over rays: a call with arrays costs as much as the rest of a ray
    """Add what rays met to their firings' hits, and let light go on behind what is open or transparent.

    Args:
        rare: The plan's.
        plan: The lidar.
        world: World of the hits.
        rays: Rays with a renderer's hits and their cosines.
        count: Number of rays.
        workspace: Its hits are added to.
        beyond: Written: rays that go on; not touched in a world in which everything is opaque.

    Returns:
        Number of rays that continue.
    """
    # Taken out of the loop: each look into a tuple inside, and each array passed on, would count references with an atomic instruction.
    sub_rays, hits, backdrop = plan.beam.share.size, workspace.hits, workspace.backdrop
    origin_m, direction, time_ns, firing_of, sub_ray = rays.origin_m, rays.direction, rays.time_ns, rays.firing, rays.sub_ray
    share, travelled_m, range_m = rays.share, rays.travelled_m, rays.range_m
    instance, triangle, cosine = rays.instance, rays.triangle, rays.cosine
    material, optics, owner, tile_count = world.material, world.optics, world.owner, world.tile_count
    position_m, orientation = world.object_position_m, world.object_orientation
    hit_count, value, what, flaw = hits.hit_count, hits.value, hits.what, hits.flaw
    room = value.shape[1]
    seed = plan.response.seed
    going_on = 0
    rule = _SYNTHETIC_ONLY
    if rare is not None:
        rule = rare.overlay.rule
    width_m, spread, relief_ratio = 2.0 * plan.beam.width_m, 2.0 * plan.beam.spread, plan.signal.relief_ratio
    # Of a firing's rays on one surface the first one, mostly the beam's axis, gives the texture of all, with the contrast that a spot as wide shows.
    noise, depth, of_firing, of_surface, of_instance = 0.0, 0.0, -1, -1, -1
    is_first = travelled_m[0] == 0.0
    if is_first and rule == _SYNTHETIC_ONLY:
        meet_sole_surfaces(plan, world, workspace)
    elif is_first:
        workspace.sole.bits[:] = 0
    ray = -1
    while ray < count - 1:
        ray += 1
        if is_first and hit_count[firing_of[ray]] == sub_rays:  # a sole surface
            ray += sub_rays - 1
            continue
        row = triangle[ray]
        if rare is not None and rule != _SYNTHETIC_ONLY and _meets_background(rays, ray, rule, backdrop, hits):
            continue
        if row < 0:
            continue
        surface = material[row]
        porosity, gap_m = float(optics[surface, _POROSITY]), float(optics[surface, _GAP_SIZE])
        has_gaps, texture = porosity > 0.0 and gap_m > 0.0, float(optics[surface, _TEXTURE])
        flaw_ratio = float(optics[surface, _FLAW]) if sub_ray[ray] == 0 else 0.0
        firing, hit_m = firing_of[ray], travelled_m[ray] + range_m[ray]
        is_new = texture > 0.0 and (firing != of_firing or surface != of_surface or instance[ray] != of_instance)
        x_m = y_m = z_m = 0.0
        if has_gaps or is_new or flaw_ratio > 0.0:
            away_m = float(range_m[ray])
            x_m = origin_m[ray, 0] + away_m * direction[ray, 0]
            y_m = origin_m[ray, 1] + away_m * direction[ray, 1]
            z_m = origin_m[ray, 2] + away_m * direction[ray, 2]
            if instance[ray] >= tile_count:
                x_m, y_m, z_m = place_on_mover(world, instance[ray], time_ns[ray], x_m, y_m, z_m)
            else:
                thing = owner[row]
                turn = (orientation[thing, 0], orientation[thing, 1], orientation[thing, 2], orientation[thing, 3])
                x_m, y_m, z_m = within((position_m[thing, 0], position_m[thing, 1], position_m[thing, 2]), turn, (x_m, y_m, z_m))
        if is_new:
            noise, depth = texture_noise(x_m, y_m, z_m, float(optics[surface, _TEXTURE_SIZE]), width_m + spread * hit_m)
            of_firing, of_surface, of_instance = firing, surface, instance[ray]
        hit_m += depth * relief_ratio * float(optics[surface, _RELIEF])
        if has_gaps:
            porosity = _opening(seed, porosity, gap_m, (x_m, y_m, z_m))
        transmission, straight = float(optics[surface, _TRANSMISSION]), float(optics[surface, _MIRROR])
        if share[ray] == 0.0 and (porosity > 0.0 or transmission > 0.0):
            continue  # the receiver's axis; it sees through
        mirror = mirrored_share(straight, cosine[ray])
        far_m = max(hit_m, NEAREST_HIT_M)
        at = hit_count[firing]
        if at < room and porosity < 1.0:
            light = 0.0
            if share[ray] > 0.0:
                light = returned(float(optics[surface, _REFLECTIVITY]), float(optics[surface, _GLOSS]), cosine[ray], texture, noise)
            value[firing, at, RANGE] = hit_m
            value[firing, at, ENERGY] = share[ray] * (1.0 - porosity) * (1.0 - mirror) * (1.0 - mirror) * light / (far_m * far_m)
            value[firing, at, COSINE] = cosine[ray]
            value[firing, at, RETRO] = optics[surface, _RETRO]
            what[firing, at, RAY] = sub_ray[ray]
            what[firing, at, INSTANCE] = instance[ray]
            what[firing, at, TRIANGLE] = row
            hit_count[firing] = at + 1
            if flaw_ratio > 0.0 and travelled_m[ray] == 0.0:
                flaw[firing] = flaw_at(x_m, y_m, z_m, flaw_ratio, float(optics[surface, _FLAW_SIZE]))
        passing, thrown = _onward(transmission, straight, mirror, porosity, share[ray], travelled_m[ray])
        if passing * sub_rays >= FAINTEST_SHARE:
            ahead = (float(direction[ray, 0]), float(direction[ray, 1]), float(direction[ray, 2]))
            _go_on(rays, ray, ahead, passing, sub_ray[ray], beyond, going_on)
            going_on += 1
        if thrown * sub_rays >= FAINTEST_SHARE:
            _go_on(rays, ray, _mirrored(world, rays, ray), thrown, sub_ray[ray] | MIRRORED, beyond, going_on)
            going_on += 1
    return going_on
