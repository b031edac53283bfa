"""Casting of sixteen rays at a time into the whole world: static and moving instances, ranges in float64; bit-identical to ``world.render.cast``."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, stage_kernel
from hilsim.compilation.lanes import (
    WIDTH,
    Doubles,
    Lanes,
    bits_of,
    count_bits,
    doubles,
    first_bit,
    floor_lanes,
    gather,
    greater_lanes,
    load_lanes,
    magnitudes,
    mask_of,
    scatter,
    select,
    singles,
    spread,
    store_lanes,
)
from hilsim.world.geometry.frames import IDENTITY
from hilsim.world.geometry.live_keys import live_pose
from hilsim.world.geometry.rotations import conjugate, rotate
from hilsim.world.geometry.tracks import keyed_pose
from hilsim.world.render.cast import AGREEMENT_M, RAY_STACK_SIZE, bound_movers
from hilsim.world.render.intersect import INFINITY
from hilsim.world.render.packet_walk import CHILD_0, CHILD_1, boxes_entered, closest_in_tree, planes_met, reciprocals, sides_entered
from hilsim.world.scene.tiles import LATTICE_PER_M
from hilsim.world.scene.world import World

_BOTTOM = constant(0)  # bottom of the stack
_NEVER = constant(np.iinfo(np.int64).min)
_ALL = constant((1 << WIDTH) - 1)  # all bits of a mask
_LATTICE_M = 1.0 / LATTICE_PER_M
NO_COSINE = np.empty(0)


@kernel
def _on_lattice(away: Doubles) -> Lanes:
    """Coordinates in a tile on the lattice, where differences to vertices are exact: neighbouring tiles test the same ray."""
    return singles(floor_lanes(away * LATTICE_PER_M + 0.5) * _LATTICE_M)


@stage_kernel
def cast_packets(  # noqa: C901, PLR0912, PLR0915 - one loop over packets: calls with the world as an argument cost more than the rays
    world: World,
    order: npt.NDArray[np.int32],
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
    time_ns: npt.NDArray[np.int64],
    max_range_m: float,
    range_m: npt.NDArray[np.float32],
    instance: npt.NDArray[np.int32],
    triangle: npt.NDArray[np.int32],
    cosine: npt.NDArray[np.float64],
) -> None:
    """Cast rays, each at its own time, sixteen at a time.

    Args:
        world: World to cast into.
        order: ``int32[p, 16]``, rays of each packet, with similar directions; -1, and numbers beyond the rays, mean none, but the first is one. Each ray occurs once.
        origin_m: ``float64[n, 3]`` in the world.
        direction: ``float32[n, 3]``, unit vectors in the world.
        time_ns: ``int64[n]``, rig time.
        max_range_m: Maximum range of a hit.
        range_m: ``float32[n]``, output; infinity for a miss.
        instance: ``int32[n]``, output; -1 for a miss.
        triangle: ``int32[n]``, output, row of the world's triangles; -1 for a miss.
        cosine: ``float64[n]``, output, absolute cosine of the angle between a ray and the normal of its hit, undefined for a miss; empty
            (``NO_COSINE``) if not needed.
    """
    bounds, links, corners = world.node_bounds, world.node_links, world.corners
    tree_origin_m, tile_count, tile_root = world.origin_m, world.tile_count, world.tile_root
    geometry_root, geometry_origin_m, instance_geometry = world.geometry_root, world.geometry_origin_m, world.instance_geometry
    key_time_ns, key_position_m, key_arrival_mps = world.key_time_ns, world.key_position_m, world.key_arrival_mps
    key_departure_mps, key_orientation = world.key_departure_mps, world.key_orientation
    key_first, key_count, period_ns, live = world.key_first, world.key_count, world.period_ns, world.live
    stack = np.empty(2 * RAY_STACK_SIZE, dtype=np.int32)
    spheres = np.empty((key_first.shape[0], 4), dtype=np.float64)
    movers = np.empty(key_first.shape[0], dtype=np.int32)
    placed = np.zeros((6, WIDTH), dtype=np.float64)
    placed[3] = 1.0
    numbers = np.empty((1, WIDTH), dtype=np.int32)
    ranges, instances, triangles, cosines = range_m.reshape(-1, 1), instance.reshape(-1, 1), triangle.reshape(-1, 1), cosine.reshape(-1, 1)
    count = range_m.shape[0]
    has_cosine = cosine.shape[0] > 0
    mover_count = bound_movers(world, origin_m, direction, time_ns, _BOTTOM, count, max_range_m, spheres, movers)
    for packet in range(order.shape[0]):
        rays = load_lanes(order, packet)
        rays = select((rays >= np.int32(0)) & (rays < np.int32(count)), rays, order[packet, 0])  # the first ray, once more
        fx, fy, fz = gather(origin_m, rays, 0), gather(origin_m, rays, 1), gather(origin_m, rays, 2)
        dx, dy, dz = gather(direction, rays, 0), gather(direction, rays, 1), gather(direction, rays, 2)
        wx, wy, wz = fx, fy, fz  # the ray in the hit geometry's frame, for the range in float64
        vx, vy, vz = doubles(dx), doubles(dy), doubles(dz)
        best = spread(np.float32(max_range_m))
        met, row = spread(np.int32(-1)), spread(np.int32(-1))
        if tile_root >= 0:
            inside: int | np.int64 = _ALL
            rx, ry, rz = singles(fx - tree_origin_m[0]), singles(fy - tree_origin_m[1]), singles(fz - tree_origin_m[2])
            ix, iy, iz = reciprocals(dx), reciprocals(dy), reciprocals(dz)
            side = sides_entered(ix, iy, iz)
            top = _BOTTOM
            link = np.int64(tile_root)
            while True:
                if link >= 0:
                    node = np.uintp(link)
                    near0, is_in0 = boxes_entered(bounds, node, CHILD_0, side, rx, ry, rz, ix, iy, iz, best)
                    near1, is_in1 = boxes_entered(bounds, node, CHILD_1, side, rx, ry, rz, ix, iy, iz, best)
                    in0, in1 = bits_of(is_in0) & inside, bits_of(is_in1) & inside
                    link, inside, later, others = np.int64(links[node, 12]), in0, np.int64(links[node, 13]), in1
                    if in0 == 0 or (in1 != 0 and 2 * count_bits(in0 & in1 & bits_of(near0 <= near1)) < count_bits(in0 & in1)):
                        link, inside, later, others = later, others, link, inside
                    if in0 != 0 and in1 != 0:
                        stack[top], stack[top + 1] = later, others
                        top += 2
                    if inside != 0:
                        continue
                else:
                    tile = (-1 - link) >> 3
                    geometry = instance_geometry[tile]
                    lx = fx - geometry_origin_m[geometry, 0]
                    ly = fy - geometry_origin_m[geometry, 1]
                    lz = fz - geometry_origin_m[geometry, 2]
                    root = geometry_root[geometry]
                    best, found = closest_in_tree(
                        bounds, links, corners, root, _on_lattice(lx), _on_lattice(ly), _on_lattice(lz), dx, dy, dz, best, inside, stack, top
                    )
                    is_found = found >= np.int32(0)
                    met, row = select(is_found, np.int32(tile), met), select(is_found, found, row)
                    wx, wy, wz = select(is_found, lx, wx), select(is_found, ly, wy), select(is_found, lz, wz)
                if top == 0:
                    break
                top -= 2
                link, inside = np.int64(stack[top]), np.int64(stack[top + 1])

        ux, uy, uz = doubles(dx), doubles(dy), doubles(dz)
        length = ux * ux + uy * uy + uz * uz
        for candidate in range(mover_count):
            cx, cy, cz = spheres[candidate, 0] - fx, spheres[candidate, 1] - fy, spheres[candidate, 2] - fz
            along = cx * ux + cy * uy + cz * uz
            apart = cx * cx + cy * cy + cz * cz - spheres[candidate, 3]
            near = bits_of((apart <= 0.0) | ((along >= 0.0) & (apart * length <= along * along)))
            if near == 0:
                continue
            mover = movers[candidate]
            number = tile_count + mover
            geometry = instance_geometry[number]
            left, posed_ns, turn = near, _NEVER, IDENTITY
            px = py = pz = 0.0
            store_lanes(numbers, 0, rays)
            while left != 0:
                k = first_bit(left)
                left &= left - 1
                ray = numbers[0, k]
                if time_ns[ray] != posed_ns:  # rays of one firing follow each other
                    posed_ns = time_ns[ray]
                    if key_first[mover] < 0:  # as in render.movers, whose arguments would be counted for each ray
                        (px, py, pz), turn = live_pose(live, -1 - key_first[mover], time_ns[ray])
                    else:
                        (px, py, pz), turn = keyed_pose(
                            key_time_ns,
                            key_position_m,
                            key_arrival_mps,
                            key_departure_mps,
                            key_orientation,
                            key_first[mover],
                            key_count[mover],
                            period_ns[mover],
                            time_ns[ray],
                        )
                body_from_world = conjugate(turn)
                mx, my, mz = rotate(body_from_world, (origin_m[ray, 0] - px, origin_m[ray, 1] - py, origin_m[ray, 2] - pz))
                ahead = (np.float64(direction[ray, 0]), np.float64(direction[ray, 1]), np.float64(direction[ray, 2]))
                placed[3, k], placed[4, k], placed[5, k] = rotate(body_from_world, ahead)
                placed[0, k] = mx - geometry_origin_m[geometry, 0]
                placed[1, k] = my - geometry_origin_m[geometry, 1]
                placed[2, k] = mz - geometry_origin_m[geometry, 2]
            lx, ly, lz = load_lanes(placed, 0), load_lanes(placed, 1), load_lanes(placed, 2)
            hx, hy, hz = load_lanes(placed, 3), load_lanes(placed, 4), load_lanes(placed, 5)
            closest, found = closest_in_tree(
                bounds,
                links,
                corners,
                geometry_root[geometry],
                singles(lx),
                singles(ly),
                singles(lz),
                singles(hx),
                singles(hy),
                singles(hz),
                best,
                near,
                stack,
                _BOTTOM,
            )
            is_found = found >= np.int32(0)
            best = select(is_found, closest, best)
            met, row = select(is_found, np.int32(number), met), select(is_found, found, row)
            wx, wy, wz = select(is_found, lx, wx), select(is_found, ly, wy), select(is_found, lz, wz)
            vx, vy, vz = select(is_found, hx, vx), select(is_found, hy, vy), select(is_found, hz, vz)

        hit = bits_of(row >= np.int32(0))
        distance = doubles(best)
        if hit != 0:
            exact, facing = planes_met(corners, greater_lanes(row, np.int32(0)), wx, wy, wz, vx, vy, vz)
            distance = select(magnitudes(exact - distance) < AGREEMENT_M, exact, distance)
            if has_cosine:
                scatter(cosines, rays, 0, facing)
        scatter(ranges, rays, 0, select(mask_of(hit), singles(distance), INFINITY))
        scatter(instances, rays, 0, met)
        scatter(triangles, rays, 0, row)


def packets_of(order: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int32]:
    """Packets of rays in a given order, ``int32[p, 16]``; the last may be filled up with -1."""
    packets = np.full(-(-len(order) // WIDTH) * WIDTH, -1, np.int32)
    packets[: len(order)] = order
    return packets.reshape(-1, WIDTH)
