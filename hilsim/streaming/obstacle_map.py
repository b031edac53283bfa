"""Obstacle map of a lidar on a moving body: returns collected in sectors and cones, packet by packet, by the thread that renders them.

The rendering thread calls ``note_packet`` after each packet with the packet's returns, including noise; the packet does not depend on it, and it costs some ten microseconds
(``bench/bench_obstacle_map.py``). A *slice* is a sixteenth of a turn. At the end of each slice, the nearest returns of the last seventeen are published, so the map is never older than a turn and a slice, and
never covers only part of a turn. A lidar that has stopped publishes nothing.

Sectors are in the levelled body frame: forward is the body's heading over ground, and the height band is vertical, so that ground ahead of a tilted body
is no obstacle. PX4 rotates the sectors of OBSTACLE_DISTANCE by yaw only (``CollisionPrevention.cpp``). Cones are in the body's own frame: a distance sensor tilts with it, and both
autopilots correct for that themselves. The attitude is that of the start of each firing sequence.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import fence_acquire, fence_release, load_acquire, store_release
from hilsim.compilation.jit import by_reference, constant, inlined_kernel, kernel, stage_kernel
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.workspace import Returns, Workspace
from hilsim.streaming.obstacle_sectors import SECTORS, note_return
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.rotations import rotate
from hilsim.world.platforms.live import LivePose, live_state

TURN_SLICES = 16
_ROWS = TURN_SLICES + 1
_TURN_SLICES = constant(TURN_SLICES)
_LONGEST_GAP = constant(4)
"""Maximum number of slices in a packet; a longer packet means that packets were not rendered."""
_SECTORS = constant(SECTORS)
_AXIS_X, _AXIS_Y, _AXIS_Z, _COSINE, _MIN, _MAX = (constant(column) for column in range(6))
_SLICE, _WHOLE = constant(0), constant(1)
_READ_TRIES = 8


class Band(NamedTuple):
    """What counts in the sectors of an obstacle map.

    Attributes:
        min_m: Minimum range; nearer hits are ignored.
        max_m: Maximum horizontal distance.
        low_m: Lower end of the height band, relative to the body.
        high_m: Upper end of the height band, relative to the body.
    """

    min_m: float
    max_m: float
    low_m: float
    high_m: float


class Cone(NamedTuple):
    """A cone of an obstacle map.

    Attributes:
        axis: Unit vector in the body frame.
        width_rad: Full angle.
        min_m: Minimum range; nearer hits are ignored.
        max_m: Maximum range.
    """

    axis: Vector
    width_rad: float
    min_m: float
    max_m: float


@by_reference
class ObstacleMap(NamedTuple):
    """Kernel-side obstacle map of one lidar; one thread writes it.

    Attributes:
        is_on: Whether the map is in use.
        slice_ns: Duration of a slice in rig time.
        has_band: Whether sectors are required.
        min_m: Minimum range; nearer hits are ignored.
        max_m: Maximum horizontal distance.
        low_m: Lower end of the height band.
        high_m: Upper end of the height band.
        cones: ``float64[k, 6]``: axis in the body, cosine of half the width, minimum and maximum range.
        slices: ``float64[17, 72 + k]``: smallest distance in each sector, then in each cone, for each of the last slices; used by the writer alone.
        word: ``int64[8]``, column 0: current slice; column 1: number of slices since the last gap; used by the writer alone.
        published: ``int64[8]``, column 0: number of publications.
        shown: ``float64[2, 72 + k]``: the latest publication and the previous one.
        shown_ns: ``int64[2]``, rig time of the newest firing in each.
    """

    is_on: bool
    slice_ns: int
    has_band: bool
    min_m: float
    max_m: float
    low_m: float
    high_m: float
    cones: npt.NDArray[np.float64]
    slices: npt.NDArray[np.float64]
    word: npt.NDArray[np.int64]
    published: npt.NDArray[np.int64]
    shown: npt.NDArray[np.float64]
    shown_ns: npt.NDArray[np.int64]


class Sight(NamedTuple):
    """A published obstacle map.

    Attributes:
        number: Number of the publication, from 1.
        time_ns: Rig time of the newest firing in it.
        sectors: ``float64[72]``, as ``obstacle_sectors.note_return`` writes them.
        cones: ``float64[k]``, the nearest range in each cone; ``inf``: nothing near; ``nan``: no ray looked there.
    """

    number: int
    time_ns: int
    sectors: npt.NDArray[np.float64]
    cones: npt.NDArray[np.float64]


def build_obstacle_map(band: Band | None, cones: Sequence[Cone], *, turn_ns: int) -> ObstacleMap:
    """Build an obstacle map of one lidar.

    Args:
        band: What counts in the sectors; None: sectors are not required.
        cones: Cones whose nearest returns are required.
        turn_ns: Duration of the lidar's turn or scan.
    """
    rows = np.array([(*cone.axis, math.cos(0.5 * cone.width_rad), cone.min_m, cone.max_m) for cone in cones])
    width = SECTORS + len(cones)
    return ObstacleMap(
        is_on=band is not None or len(cones) > 0,
        slice_ns=max(turn_ns // TURN_SLICES, 1),
        has_band=band is not None,
        min_m=band.min_m if band else 0.0,
        max_m=band.max_m if band else 0.0,
        low_m=band.low_m if band else 0.0,
        high_m=band.high_m if band else 0.0,
        cones=rows.reshape(-1, 6),
        slices=np.full((_ROWS, width), np.nan),
        word=np.full(8, -_ROWS, np.int64),
        published=np.zeros(8, np.int64),
        shown=np.full((2, width), np.nan),
        shown_ns=np.zeros(2, np.int64),
    )


def no_obstacle_map() -> ObstacleMap:
    """A map that is not in use: nothing is stored in it."""
    return build_obstacle_map(None, (), turn_ns=0)


@kernel
def _publish(obstacle_map: ObstacleMap, time_ns: int) -> None:
    """Publish the smallest distances of all slices."""
    number = obstacle_map.published[0] + 1
    fence_release()
    shown = obstacle_map.shown[number % 2]
    shown[:] = math.nan
    for row in range(obstacle_map.slices.shape[0]):
        for column in range(shown.size):
            if obstacle_map.slices[row, column] <= shown[column] or math.isnan(shown[column]):
                shown[column] = obstacle_map.slices[row, column]
    obstacle_map.shown_ns[number % 2] = time_ns
    store_release(obstacle_map.published, (0,), number)


@kernel
def _begin_slice(obstacle_map: ObstacleMap, time_ns: int) -> None:
    """Advance to the slice of a rig time and publish complete turns; restart after a gap."""
    word = obstacle_map.word
    target = time_ns // obstacle_map.slice_ns
    passed = target - word[_SLICE]
    if passed == 0:
        return
    word[_WHOLE] = word[_WHOLE] + passed if 0 < passed <= _LONGEST_GAP else 0
    if word[_WHOLE] > _TURN_SLICES:
        _publish(obstacle_map, time_ns)
    if word[_WHOLE] == 0:
        obstacle_map.slices[:] = math.nan
    else:
        for number in range(word[_SLICE] + 1, target + 1):
            obstacle_map.slices[number % _ROWS] = math.nan
    word[_SLICE] = target


@inlined_kernel
def _reach_m(returns: Returns, sequence: int, channel: int, unit_m: float) -> float:
    """Smallest reported range of a firing; ``inf`` for none."""
    nearest = math.inf
    for return_number in range(returns.distance.shape[0]):
        distance = returns.distance[return_number, sequence, channel]
        if distance > 0:
            nearest = min(nearest, distance * unit_m)
    return nearest


@inlined_kernel
def _note_in_cones(
    obstacle_map: ObstacleMap,
    reach_m: float,
    met_m: float,
    x: float,
    y: float,
    z: float,
    axes: npt.NDArray[np.float64],
    nearest_m: npt.NDArray[np.float64],
) -> None:
    """Reduce the range of each cone that contains a ray; direction and ``float64[k, 3]`` axes in the world. ``met_m`` is the range of the hit, which tells a return that was too near from a miss."""
    for cone in range(axes.shape[0]):
        if (
            axes[cone, 0] * x + axes[cone, 1] * y + axes[cone, 2] * z < obstacle_map.cones[cone, _COSINE]
            or min(reach_m, met_m) < obstacle_map.cones[cone, _MIN]
        ):
            continue
        counted = reach_m if reach_m <= obstacle_map.cones[cone, _MAX] else math.inf
        if not nearest_m[_SECTORS + cone] <= counted:
            nearest_m[_SECTORS + cone] = counted


@inlined_kernel
def _turn_axes(obstacle_map: ObstacleMap, body: Quaternion, axes: npt.NDArray[np.float64]) -> None:
    for cone in range(axes.shape[0]):
        axis = (obstacle_map.cones[cone, _AXIS_X], obstacle_map.cones[cone, _AXIS_Y], obstacle_map.cones[cone, _AXIS_Z])
        axes[cone, 0], axes[cone, 1], axes[cone, 2] = rotate(body, axis)


@stage_kernel
def note_packet(obstacle_map: ObstacleMap | None, plan: LidarPlan, live: LivePose, workspace: Workspace) -> None:
    """Add the reported returns of a packet; firings that a decimated sensor leaves out are ignored.

    Args:
        obstacle_map: Map, written; None: no message needs the lidar, and this code is not compiled.
        plan: Plan of the lidar.
        live: Pose of the body.
        workspace: Workspace of the packet after ``emulator.fused.render_data_packet``.
    """
    if obstacle_map is None:
        return
    if not obstacle_map.is_on:
        return
    rays, returns = workspace.rays, workspace.returns
    sequences, sub_rays = plan.sequences_per_packet, plan.beam.share.size
    _begin_slice(obstacle_map, rays.time_ns[0])
    nearest_m = obstacle_map.slices[obstacle_map.word[_SLICE] % _ROWS]
    axes = np.empty((obstacle_map.cones.shape[0], 3))
    sector = 0
    for sequence in range(sequences):
        (body_x, body_y, body_z), body = live_state(live, rays.time_ns[sequence * sub_rays])
        nose_x, nose_y, _ = rotate(body, (1.0, 0.0, 0.0))
        length = max(math.hypot(nose_x, nose_y), 1e-12)
        cosine, sine = nose_x / length, nose_y / length
        _turn_axes(obstacle_map, body, axes)
        for channel in range(plan.firing_offset_ns.size):
            if not workspace.reported[channel, sequence]:
                continue
            ray = (channel * sequences + sequence) * sub_rays
            reach_m = _reach_m(returns, sequence, channel, plan.response.unit_m)
            met_m = float(rays.range_m[ray])
            if math.isinf(reach_m) and met_m < plan.response.range_min_m:
                continue  # nearer than the lidar's minimum range: unknown, not free
            x, y, z = float(rays.direction[ray, 0]), float(rays.direction[ray, 1]), float(rays.direction[ray, 2])
            if obstacle_map.has_band:
                east, north, up = rays.origin_m[ray, 0] - body_x, rays.origin_m[ray, 1] - body_y, rays.origin_m[ray, 2] - body_z
                sector = note_return(
                    reach_m,
                    (cosine * x + sine * y, cosine * y - sine * x, z),
                    (cosine * east + sine * north, cosine * north - sine * east, up),
                    obstacle_map.min_m,
                    obstacle_map.max_m,
                    obstacle_map.low_m,
                    obstacle_map.high_m,
                    nearest_m,
                    sector,
                )
            _note_in_cones(obstacle_map, reach_m, met_m, x, y, z, axes, nearest_m)


@kernel
def _read(obstacle_map: ObstacleMap, nearest_m: npt.NDArray[np.float64], time_ns: npt.NDArray[np.int64]) -> int:
    """Copy the latest publication; returns its number, 0 for none."""
    number = load_acquire(obstacle_map.published, (0,))
    for _ in range(_READ_TRIES):
        nearest_m[:] = obstacle_map.shown[number % 2]
        time_ns[0] = obstacle_map.shown_ns[number % 2]
        fence_acquire()
        newest = load_acquire(obstacle_map.published, (0,))
        if newest == number:
            break
        number = newest
    return number


def sight(obstacle_map: ObstacleMap) -> Sight | None:
    """Latest publication; None before the first full turn. One thread may read while another writes."""
    nearest_m, time_ns = np.empty(obstacle_map.shown.shape[1]), np.zeros(1, np.int64)
    number = _read(obstacle_map, nearest_m, time_ns)
    return Sight(number, int(time_ns[0]), nearest_m[:SECTORS], nearest_m[SECTORS:]) if number else None
