"""Hits of firings whose rays all meet one opaque surface that stands still, sixteen channels at a time: most firings do.

The formulas are those of ``emulator.hits`` and ``sensor.echoes.sole_echo``, operation by operation, so the results are bit-identical (tested).
"""

import math

import numpy as np

from hilsim.compilation.jit import constant, stage_kernel
from hilsim.compilation.lanes import WIDTH, bits_of, doubles, first_bit, gather, greater_lanes, lesser_lanes, load_lanes, spread, store_lanes
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.reception.light import leaves_hits
from hilsim.emulator.workspace import AXIS_ENERGY, SOLE_ROWS, SUMMED, Workspace
from hilsim.sensor.echoes import COSINE, ECHO, ENERGY, INSTANCE, RANGE, RAY, RETRO, TRIANGLE
from hilsim.sensor.signal.losses import SHADOW_DEPTH_M, has_losses
from hilsim.world.geometry.rotations import rotate
from hilsim.world.render.surfaces import returned_by_all, texture_noises
from hilsim.world.scene.materials import Optic
from hilsim.world.scene.world import World

NEAREST_HIT_M = 0.01
"""Shortest range whose square an energy is divided by."""
_REFLECTIVITY, _RETRO, _GLOSS = constant(Optic.REFLECTIVITY), constant(Optic.RETRO), constant(Optic.GLOSS)
_POROSITY, _TRANSMISSION, _MIRROR = constant(Optic.POROSITY), constant(Optic.TRANSMISSION), constant(Optic.MIRROR)
_TEXTURE, _TEXTURE_SIZE, _FLAW, _RELIEF = constant(Optic.TEXTURE), constant(Optic.TEXTURE_SIZE), constant(Optic.FLAW), constant(Optic.RELIEF)
_FIRING, _SURFACE, _OBJECT = 0, 1, 2
_MOMENT, _TOTAL, _OF_RETRO, _SHARE = 0, 1, 2, 4
_NO_LANES = constant(0)


@stage_kernel
def meet_sole_surfaces(plan: LidarPlan, world: World, workspace: Workspace) -> None:  # noqa: C901, PLR0912, PLR0915 - one loop over firings
    """Write the hits of the firings whose rays all meet one such surface, and the sums of those that make one echo and lose nothing.

    Args:
        plan: The lidar.
        world: World of the hits.
        workspace: Its rays have been cast. Written: the hits of such firings, which are as many as they have rays, and ``sole``'s sums.
    """
    rays, hits, sole, share = workspace.rays, workspace.hits, workspace.sole, plan.beam.share
    channels, sequences, sub_rays = plan.firing_offset_ns.size, workspace.sequence.size, share.size
    instance, triangle, origin_m, direction = rays.instance, rays.triangle, rays.origin_m, rays.direction
    range_m, cosine = rays.range_m.reshape(-1, sub_rays), rays.cosine.reshape(-1, sub_rays)
    hit_count, value, what, sums, bits = hits.hit_count, hits.value, hits.what, sole.sums, sole.bits
    material, optics, owner, tile_count = world.material, world.optics, world.owner, world.tile_count
    position_m, orientation = world.object_position_m, world.object_orientation
    width_m, spread_ratio, signal = 2.0 * plan.beam.width_m, 2.0 * plan.beam.spread, plan.signal
    extent_m, relief_ratio = plan.response.merge_distance_m, signal.relief_ratio
    if has_losses(signal, plan.beam.receiver):
        extent_m = min(extent_m, signal.split_distance_m, SHADOW_DEPTH_M)
    sums_up = leaves_hits(plan.rare, plan)
    keeps_hits = workspace.keeps_hits
    groups = workspace.noise.shape[1] // WIDTH
    rows, energies = np.zeros((3, WIDTH), np.int32), np.empty((sub_rays + 1, WIDTH), np.float64)
    for sequence in range(sequences):
        for group in range(groups):
            alike = 0
            for lane in range(WIDTH):
                channel = group * WIDTH + lane
                firing = min(channel, channels - 1) * sequences + sequence
                first = firing * sub_rays
                row, of = triangle[first], instance[first]
                rows[_FIRING, lane] = firing
                if row < 0 or of >= tile_count or channel >= channels:
                    continue
                surface = material[row]
                is_alike = optics[surface, _POROSITY] + optics[surface, _TRANSMISSION] + optics[surface, _MIRROR] + optics[surface, _FLAW] == 0.0
                for ray in range(first + 1, first + sub_rays):
                    other = triangle[ray]
                    is_alike = is_alike and other >= 0 and instance[ray] == of and (other == row or material[other] == surface)
                if is_alike:
                    rows[_SURFACE, lane], rows[_OBJECT, lane] = surface, owner[row]
                    alike |= 1 << lane
            if alike == 0:
                bits[sequence * groups + group, SUMMED] = 0
                continue
            firings, surfaces, things = load_lanes(rows, _FIRING), load_lanes(rows, _SURFACE), load_lanes(rows, _OBJECT)
            of_first, away_m = firings * np.int32(sub_rays), gather(range_m, firings, 0)
            reflectivity, gloss = doubles(gather(optics, surfaces, _REFLECTIVITY)), doubles(gather(optics, surfaces, _GLOSS))
            texture, of_retro = doubles(gather(optics, surfaces, _TEXTURE)), doubles(gather(optics, surfaces, _RETRO))
            noise, depth_m = spread(0.0), spread(0.0)
            if bits_of(texture > 0.0) & alike != 0:
                x_m = gather(origin_m, of_first, 0) + doubles(away_m * gather(direction, of_first, 0)) - gather(position_m, things, 0)
                y_m = gather(origin_m, of_first, 1) + doubles(away_m * gather(direction, of_first, 1)) - gather(position_m, things, 1)
                z_m = gather(origin_m, of_first, 2) + doubles(away_m * gather(direction, of_first, 2)) - gather(position_m, things, 2)
                qx, qy, qz = gather(orientation, things, 1), gather(orientation, things, 2), gather(orientation, things, 3)
                x_m, y_m, z_m = rotate((0.0 - gather(orientation, things, 0), qx, qy, qz), (x_m, y_m, z_m))  # back: -q is the rotation of q
                size_m = doubles(gather(optics, surfaces, _TEXTURE_SIZE))
                noise, depth_m = texture_noises(x_m, y_m, z_m, size_m, doubles(away_m) * spread_ratio + width_m)
                depth_m = depth_m * relief_ratio * doubles(gather(optics, surfaces, _RELIEF))
            store_lanes(energies, sub_rays, depth_m)
            nearest_m, farthest_m = spread(math.inf), spread(-math.inf)
            total, moment, retro, lambertian = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
            for ray in range(sub_rays):
                hit_m, facing, energy = doubles(gather(range_m, firings, ray)) + depth_m, gather(cosine, firings, ray), spread(0.0)
                if share[ray] > 0.0:
                    far_m = greater_lanes(hit_m, NEAREST_HIT_M)
                    energy = share[ray] * returned_by_all(reflectivity, gloss, facing, texture, noise) / (far_m * far_m)
                store_lanes(energies, ray, energy)
                nearest_m, farthest_m = lesser_lanes(nearest_m, hit_m), greater_lanes(farthest_m, hit_m)
                total, moment, retro = total + energy, moment + energy * hit_m, retro + energy * of_retro
                lambertian = lambertian + energy * hit_m * hit_m
            row = (sequence * groups + group) * SOLE_ROWS
            store_lanes(sums, row + _MOMENT, moment)
            store_lanes(sums, row + _TOTAL, total)
            store_lanes(sums, row + _OF_RETRO, retro)
            store_lanes(sums, row + _SHARE, lambertian)
            store_lanes(sums, row + AXIS_ENERGY, load_lanes(energies, 0))
            summed = alike & bits_of(total > 0.0) & bits_of(farthest_m - nearest_m < extent_m) if sums_up else _NO_LANES
            bits[sequence * groups + group, SUMMED] = summed
            left = alike
            while left != 0:
                lane = first_bit(left)
                left &= left - 1
                firing, surface = rows[_FIRING, lane], rows[_SURFACE, lane]
                hit_count[firing] = sub_rays
                for at in range(sub_rays if keeps_hits or summed >> lane & 1 == 0 else 0):
                    ray = firing * sub_rays + at
                    value[firing, at, RANGE] = range_m[firing, at] + energies[sub_rays, lane]
                    value[firing, at, ENERGY] = energies[at, lane]
                    value[firing, at, COSINE] = cosine[firing, at]
                    value[firing, at, RETRO] = optics[surface, _RETRO]
                    what[firing, at, RAY] = at
                    what[firing, at, INSTANCE] = instance[ray]
                    what[firing, at, TRIANGLE] = triangle[ray]
                    what[firing, at, ECHO] = 0 if energies[at, lane] > 0.0 else -1
