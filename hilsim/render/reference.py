"""The reference: every ray against every triangle in NumPy float64, without trees, tiles or culling. Slow by design."""

import numpy as np
import numpy.typing as npt

from hilsim.geometry.rotations import matrix_from_quaternion
from hilsim.geometry.tracks import PoseTrack, track_state
from hilsim.scene.world import World

_TOLERANCE = 1e-9


class ReferenceRenderer:
    """A ``Renderer`` of about 1 Mtriangle a second per ray; same arguments and results as ``render.cpu.cast_rays``."""

    def cast_rays(
        self,
        world: World,
        origin_m: npt.NDArray[np.float64],
        direction: npt.NDArray[np.float32],
        time_ns: npt.NDArray[np.int64],
        max_range_m: float,
        range_m: npt.NDArray[np.float32],
        instance: npt.NDArray[np.int32],
        triangle: npt.NDArray[np.int32],
    ) -> None:
        """Fill ``range_m``, ``instance`` and ``triangle``."""
        for ray in range(len(range_m)):
            best = (float(max_range_m), -1, -1)
            for number, geometry in enumerate(world.instance_geometry):
                origin = origin_m[ray]
                heading = direction[ray].astype(np.float64)
                if number >= world.tile_count:
                    position, turn = track_state(mover_track(world, number - world.tile_count), int(time_ns[ray]))
                    body_from_world = matrix_from_quaternion(turn).T
                    origin = body_from_world @ (origin - np.array(position))
                    heading = body_from_world @ heading
                rows = geometry_rows(world, int(geometry))
                distance = _distances(world.corners[rows].astype(np.float64), origin - world.geometry_origin_m[geometry], heading)
                nearest = int(np.argmin(distance))
                if distance[nearest] < best[0]:
                    best = (float(distance[nearest]), number, int(rows[nearest]))
            found = best[1] >= 0
            range_m[ray] = best[0] if found else np.inf
            instance[ray], triangle[ray] = best[1:]


def mover_track(world: World, mover: int) -> PoseTrack:
    """The pose track of a mover."""
    keys = slice(world.key_first[mover], world.key_first[mover] + world.key_count[mover])
    return PoseTrack(
        world.key_time_ns[keys],
        world.key_position_m[keys],
        world.key_arrival_mps[keys],
        world.key_departure_mps[keys],
        world.key_orientation[keys],
        int(world.period_ns[mover]),
    )


def geometry_rows(world: World, geometry: int) -> npt.NDArray[np.int64]:
    """Rows of the world's triangles in a geometry, found by traversing its tree."""
    rows: list[npt.NDArray[np.int64]] = []
    waiting = [int(world.geometry_root[geometry])]
    while waiting:
        link = waiting.pop()
        if link >= 0:
            waiting.extend(int(child) for child in world.node_links[link, 12:14])
        else:
            first, count = (-1 - link) >> 3, (-1 - link) & 7
            rows.append(np.arange(first, first + count))
    return np.sort(np.concatenate(rows))


def _distances(corners: npt.NDArray[np.float64], origin: npt.NDArray[np.float64], heading: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Distance along one ray to each triangle ``float64[m, 9]``, infinity for a miss: plane first, then the side of each edge."""
    a, e1, e2 = corners[:, :3], corners[:, 3:6], corners[:, 6:]
    normal = np.cross(e1, e2)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.einsum("ij,ij->i", normal, a - origin) / (normal @ heading)
        point = origin + distance[:, np.newaxis] * heading - a
        square = np.einsum("ij,ij->i", normal, normal)
        u = np.einsum("ij,ij->i", np.cross(point, e2), normal) / square
        v = np.einsum("ij,ij->i", np.cross(e1, point), normal) / square
        inside = (u >= -_TOLERANCE) & (v >= -_TOLERANCE) & (u + v <= 1.0 + _TOLERANCE) & (distance > 0.0) & np.isfinite(distance)
    found: npt.NDArray[np.float64] = np.where(inside, distance, np.inf)
    return found
