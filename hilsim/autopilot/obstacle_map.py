"""What a lidar sees near the vehicle that carries it, folded into sectors and cones packet by packet, by the thread that renders them.

The rendering thread calls ``note_packet`` behind each packet, for the returns that went into it, noise and all; it is of no use to the packet and costs the thread some ten microseconds
(``bench/bench_obstacle_map.py``). A *slice* is a sixteenth of a turn. At the end of each, what was nearest in the last seventeen is published, so what is read is never older than a turn and a slice and
never half a turn. A lidar that has stopped publishes nothing.

Sectors lie in the body's frame turned level: forward is where the nose points over ground, and the height band is measured along the plumb line, so that ground ahead of a vehicle that leans
is no obstacle. PX4 turns the sectors of OBSTACLE_DISTANCE by the vehicle's yaw alone (``CollisionPrevention.cpp``). Cones lie in the body's own frame: a distance sensor leans with the vehicle, and both
autopilots allow for that themselves. The attitude is the one at the beginning of each firing sequence.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.autopilot.obstacle_sectors import SECTORS, note_return, orientation_axis
from hilsim.compilation.atomics import fence_acquire, fence_release, load_acquire, store_release
from hilsim.compilation.jit import by_reference, constant, inlined_kernel, kernel, stage_kernel
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.workspace import Returns, Workspace
from hilsim.geometry.frames import Quaternion
from hilsim.geometry.rotations import rotate
from hilsim.rangefinders.specs import DistanceSensorSpec, ObstacleSpec
from hilsim.vehicle.live import LivePose, live_state

TURN_SLICES = 16
_ROWS = TURN_SLICES + 1
_TURN_SLICES = constant(TURN_SLICES)
_LONGEST_GAP = constant(4)
"""Slices that a packet may span; after more than that something was not rendered."""
_SECTORS = constant(SECTORS)
_AXIS_X, _AXIS_Y, _AXIS_Z, _COSINE, _MIN, _MAX = (constant(column) for column in range(6))
_SLICE, _WHOLE = constant(0), constant(1)
_READ_TRIES = 8


@by_reference
class ObstacleMap(NamedTuple):
    """Kernel-side obstacle map of one lidar; one thread writes it.

    Attributes:
        is_on: Whether anything is to be noted.
        slice_ns: Of rig time.
        has_band: Whether sectors are required.
        min_m: Nearer hits are ignored.
        max_m: Farthest level distance that counts.
        low_m: Lower end of the height band.
        high_m: Upper end.
        cones: ``float64[k, 6]``: axis in the body, cosine of half the width, nearest and farthest range that count.
        slices: ``float64[17, 72 + k]``: nearest of each sector, then of each cone, in each of the last slices; the writer's own.
        word: ``int64[8]``: column 0 the slice that is being filled, 1 how many were filled since the last gap; the writer's own.
        published: ``int64[8]``, column 0: how often something was published.
        shown: ``float64[2, 72 + k]``: what was published last, and before that.
        shown_ns: ``int64[2]``, rig time of the newest firing in it.
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
    """What was published.

    Attributes:
        number: Of the publication, from 1.
        time_ns: Rig time of the newest firing in it.
        sectors: ``float64[72]``, as ``obstacle_sectors.note_return`` writes them.
        cones: ``float64[k]``, the nearest range in each cone; ``inf``: nothing near; ``nan``: no ray looked there.
    """

    number: int
    time_ns: int
    sectors: npt.NDArray[np.float64]
    cones: npt.NDArray[np.float64]


def build_obstacle_map(obstacle: ObstacleSpec | None, distances: Sequence[DistanceSensorSpec], *, turn_ns: int) -> ObstacleMap:
    """An obstacle map for the messages required of one lidar.

    Args:
        obstacle: Sectors; None: none.
        distances: Cones.
        turn_ns: How long the lidar takes for a turn, or a scan.
    """
    cones = np.array(
        [
            (*orientation_axis(spec.orientation), math.cos(math.radians(0.5 * spec.width_deg)), spec.range_min_m, spec.range_max_m)
            for spec in distances
        ]
    )
    width = SECTORS + len(distances)
    return ObstacleMap(
        is_on=obstacle is not None or len(distances) > 0,
        slice_ns=max(turn_ns // TURN_SLICES, 1),
        has_band=obstacle is not None,
        min_m=obstacle.range_min_m if obstacle else 0.0,
        max_m=obstacle.range_max_m if obstacle else 0.0,
        low_m=obstacle.low_m if obstacle else 0.0,
        high_m=obstacle.high_m if obstacle else 0.0,
        cones=cones.reshape(-1, 6),
        slices=np.full((_ROWS, width), np.nan),
        word=np.full(8, -_ROWS, np.int64),
        published=np.zeros(8, np.int64),
        shown=np.full((2, width), np.nan),
        shown_ns=np.zeros(2, np.int64),
    )


def no_obstacle_map() -> ObstacleMap:
    """A map without a reader: nothing is stored in it."""
    return build_obstacle_map(None, (), turn_ns=0)


@kernel
def _publish(obstacle_map: ObstacleMap, time_ns: int) -> None:
    """Show what was nearest in all slices."""
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
    """Go on to the slice of a rig time, publishing what is complete; after a gap everything begins anew."""
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
    """Nearest range that is reported for a firing; ``inf`` for none."""
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
    """Let a ray lower the range of the cones that it lies in; direction and ``float64[k, 3]`` axes in the world. The hit decides whether the missing return was too near."""
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
    """Note what a packet's firings reported; those that a decimated sensor leaves out count for nothing.

    Args:
        obstacle_map: Written; None: no message needs the lidar, and this code is not compiled.
        plan: The lidar.
        live: Where the vehicle is.
        workspace: Of the packet, as ``emulator.fused.render_data_packet`` leaves them.
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
                continue  # too near for the lidar: it sees nothing, which is not that nothing is there
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
    """Copy what was published last; returns its number, 0 for nothing yet."""
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
    """What was published last; None before the first full turn. May be asked by any one thread while another writes."""
    nearest_m, time_ns = np.empty(obstacle_map.shown.shape[1]), np.zeros(1, np.int64)
    number = _read(obstacle_map, nearest_m, time_ns)
    return Sight(number, int(time_ns[0]), nearest_m[:SECTORS], nearest_m[SECTORS:]) if number else None
