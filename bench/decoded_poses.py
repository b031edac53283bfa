"""The pose that an independent decoder finds in the packets of a moved lidar.

Points of a turn, put into the world by the sender's own path, miss walls whose places are known by noise, and by the error of the rendered pose: a fit by
least squares gives the place and the turn by which it was off.
"""

import numpy as np
import velodyne_decoder

WALL_M, FLOOR_M, CEILING_M = 40.0, -1.0, 39.0
SCENE = f"""
[[scene.box]]
position_m = [0.0, 0.0, {0.5 * (FLOOR_M + CEILING_M)}]
size_m = [{2 * WALL_M}, {2 * WALL_M}, {CEILING_M - FLOOR_M}]
"""
_NORMAL = np.array(((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, -1), (0, 0, 1)), float)
_AWAY_M = np.array((WALL_M, WALL_M, WALL_M, WALL_M, -FLOOR_M, CEILING_M))
_CORNER_M = 0.5
_MIN_POINTS = 5000


def turns_of(payloads):
    """Turns of a VLP-16 by velodyne-decoder: times past the hour (s) of the points, and the points in metres; x forward, y left, z up."""
    decoder = velodyne_decoder.StreamDecoder(velodyne_decoder.Config(model=velodyne_decoder.Model.VLP16, min_range=0.5, max_range=130.0))
    for payload in payloads:
        found = decoder.decode(int.from_bytes(payload[1200:1204], "little") * 1e-6, payload)
        if found is not None:
            stamp, points = found[0].device, np.asarray(found[1], float)
            yield stamp + points[:, 4], points[:, :3]


def pose_error(points_m, position_m, rotation):
    """Error of the poses of a turn, the same for all its points.

    Args:
        points_m: ``float64[n, 3]`` in the body.
        position_m: ``float64[n, 3]``, where the sender has the body at each point's time.
        rotation: ``float64[n, 3, 3]``, world from body, likewise.

    Returns:
        Place (m) and turn (deg) by which the poses were off, about axes of the world, and the standard deviation of what is left (m); None where walls
        of fewer than three directions are seen.
    """
    away = np.einsum("nij,nj->ni", rotation, points_m)
    world = position_m + away
    miss = world @ _NORMAL.T - _AWAY_M
    wall = np.abs(miss).argmin(axis=1)
    is_clear = (np.abs(miss) < _CORNER_M).sum(axis=1) == 1
    if is_clear.sum() < _MIN_POINTS or len({int(number) // 2 for number in np.unique(wall[is_clear])}) < 3:
        return None
    normal, away, residual = _NORMAL[wall[is_clear]], away[is_clear], miss[is_clear, wall[is_clear]]
    slopes = np.concatenate((normal, np.cross(away, normal)), axis=1)
    found, *_ = np.linalg.lstsq(slopes, residual, rcond=None)
    return np.linalg.norm(found[:3]), np.degrees(np.linalg.norm(found[3:])), (residual - slopes @ found).std()
