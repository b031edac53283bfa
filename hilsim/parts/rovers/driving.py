"""A rover that drives through a scene: its motion, its contact with the ground, and its lidar.

It is a differential drive: it turns in place, and drives forward. Waypoints or its buttons control it. It rests on the ground under its four wheels, found
by rays from above; a wheel without ground below it keeps its height. Each cycle has one scan, measured at the cycle's own instant.

Poses and points are sent in a frame with y up: x east, y up, z south. Rotation about x is roll, about y heading, about z pitch (nose up).
"""

import math
from enum import IntEnum, IntFlag
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire
from hilsim.compilation.jit import by_reference, constant, kernel
from hilsim.parts.rovers.fleet import Fleet, FleetWord, RoverCount
from hilsim.parts.rovers.scan_queue import ScanQueues, put_scan
from hilsim.parts.rovers.specs import RoverDriveSpec
from hilsim.transmit.brake import doze_until
from hilsim.transmit.libc import monotonic_ns
from hilsim.world.geometry.frames import Quaternion
from hilsim.world.geometry.rotations import about_axis, multiply, rotate
from hilsim.world.render.cpu import cast_many, cast_rays
from hilsim.world.scene.world import World

_STEP_NS = constant(20_000_000)
_LEAD_NS = constant(60_000_000)
"""Time before a cycle at which its scan is begun, or the larger part of a period where that is shorter."""
_LEAD_SHARE = 0.6
_ARRIVED_M = 0.2
_ABOVE_M, _BELOW_M = 1.0, 4.0
"""Start height and length of the search for the ground."""
_WHEELS = constant(4)


class Buttons(IntFlag):
    """Meaning of a command's bits for a rover controlled by buttons."""

    FORWARD = 1
    BACK = 2
    LEFT = 4
    RIGHT = 8


_FORWARD, _BACK, _LEFT, _RIGHT = (constant(int(button)) for button in Buttons)


class DriveState(IntEnum):
    """Elements of a rover's state, ``float64[7]``."""

    X = 0
    Y = 1
    Z = 2
    HEADING_RAD = 3
    ROLL_RAD = 4
    PITCH_UP_RAD = 5
    WAYPOINT = 6
    """Index of the next waypoint."""


@by_reference
class Drive(NamedTuple):
    """Parameters of one rover, for kernels.

    Attributes:
        speed_mps: Driving speed.
        turn_radps: Turning rate.
        wheelbase_m: Distance between front and rear wheels.
        track_m: Distance between left and right wheels.
        waypoint_m: ``float64[w, 2]``, x and y in the world.
        is_looped: Whether the first waypoint follows the last.
        by_buttons: Whether commands control the rover, not the waypoints.
        lidar_height_m: Height above the ground under the wheels.
        range_max_m: Maximum range of the lidar.
        direction: ``float32[n, 3]``, directions of its rays: x forward, y left, z up.
    """

    speed_mps: float
    turn_radps: float
    wheelbase_m: float
    track_m: float
    waypoint_m: npt.NDArray[np.float64]
    is_looped: bool
    by_buttons: bool
    lidar_height_m: float
    range_max_m: float
    direction: npt.NDArray[np.float32]


class ScanMemory(NamedTuple):
    """Working memory of a scan of ``n`` rays, at least four.

    Attributes:
        origin_m: ``float64[n, 3]``, origins of the rays.
        direction: ``float32[n, 3]``, directions of the rays.
        time_ns: ``int64[n]``, rig times of the rays.
        range_m: ``float32[n]``, ranges of the hits.
        instance: ``int32[n]``, instances of the hits.
        triangle: ``int32[n]``, triangles of the hits.
        points: ``float32[n, 3]``, points of the scan.
        pose: ``float32[6]``, pose of the scan.
    """

    origin_m: npt.NDArray[np.float64]
    direction: npt.NDArray[np.float32]
    time_ns: npt.NDArray[np.int64]
    range_m: npt.NDArray[np.float32]
    instance: npt.NDArray[np.int32]
    triangle: npt.NDArray[np.int32]
    points: npt.NDArray[np.float32]
    pose: npt.NDArray[np.float32]


def build_drive(spec: RoverDriveSpec) -> tuple[Drive, npt.NDArray[np.float64]]:
    """Build a rover's parameters and its initial state."""
    around = np.arange(spec.columns) * (2.0 * math.pi / spec.columns)
    up = np.radians(np.linspace(spec.elevation_min_deg, spec.elevation_max_deg, spec.rows))[:, np.newaxis]
    rays = np.stack(np.broadcast_arrays(np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)), axis=-1)
    state = np.zeros(len(DriveState))
    state[[DriveState.X, DriveState.Y, DriveState.Z]] = spec.position_m
    state[DriveState.HEADING_RAD] = math.radians(spec.heading_deg)
    drive = Drive(
        speed_mps=spec.speed_mps,
        turn_radps=math.radians(spec.turn_dps),
        wheelbase_m=spec.wheelbase_m,
        track_m=spec.track_m,
        waypoint_m=np.array(spec.waypoints_m, np.float64).reshape(-1, 2),
        is_looped=spec.loop,
        by_buttons=spec.steered_by == "buttons",
        lidar_height_m=spec.lidar_height_m,
        range_max_m=spec.range_max_m,
        direction=rays.reshape(-1, 3).astype(np.float32),
    )
    return drive, state


def allocate_scan_memory(rays: int) -> ScanMemory:
    """Allocate the memory for a number of rays."""
    size = max(rays, int(_WHEELS))
    return ScanMemory(
        origin_m=np.zeros((size, 3)),
        direction=np.zeros((size, 3), np.float32),
        time_ns=np.zeros(size, np.int64),
        range_m=np.zeros(size, np.float32),
        instance=np.zeros(size, np.int32),
        triangle=np.zeros(size, np.int32),
        points=np.zeros((size, 3), np.float32),
        pose=np.zeros(6, np.float32),
    )


@kernel
def _wrapped(angle_rad: float) -> float:
    """Wrap an angle to within half a turn of 0."""
    return angle_rad - 2.0 * math.pi * math.floor((angle_rad + math.pi) / (2.0 * math.pi))


@kernel
def _orientation(state: npt.NDArray[np.float64]) -> Quaternion:
    """World from rover: heading, then pitch, then roll."""
    heading, pitch_up, roll = state[DriveState.HEADING_RAD], state[DriveState.PITCH_UP_RAD], state[DriveState.ROLL_RAD]
    return multiply(about_axis((0.0, 0.0, 1.0), heading), multiply(about_axis((0.0, 1.0, 0.0), -pitch_up), about_axis((1.0, 0.0, 0.0), roll)))


@kernel
def _steer(drive: Drive, state: npt.NDArray[np.float64], buttons: int, dt_s: float) -> tuple[float, float]:
    """Driving speed and turning rate now."""
    if drive.by_buttons:
        ahead = int((buttons & _FORWARD) != 0) - int((buttons & _BACK) != 0)
        left = int((buttons & _LEFT) != 0) - int((buttons & _RIGHT) != 0)
        return ahead * drive.speed_mps, left * drive.turn_radps
    place = int(state[DriveState.WAYPOINT])
    if place >= drive.waypoint_m.shape[0]:
        return 0.0, 0.0
    east, north = drive.waypoint_m[place, 0] - state[DriveState.X], drive.waypoint_m[place, 1] - state[DriveState.Y]
    if math.hypot(east, north) < max(_ARRIVED_M, drive.speed_mps * dt_s):
        state[DriveState.WAYPOINT] = (place + 1) % drive.waypoint_m.shape[0] if drive.is_looped else place + 1
        return 0.0, 0.0
    error = _wrapped(math.atan2(north, east) - state[DriveState.HEADING_RAD])
    turn = min(max(error / dt_s, -drive.turn_radps), drive.turn_radps)
    return drive.speed_mps * max(math.cos(error), 0.0), turn


@kernel
def move(drive: Drive, state: npt.NDArray[np.float64], buttons: int, duration_ns: int) -> None:
    """Advance the rover by a duration."""
    left_ns = duration_ns
    while left_ns > 0:
        dt_s = min(left_ns, _STEP_NS) / 1e9
        speed_mps, turn_radps = _steer(drive, state, buttons, dt_s)
        heading = state[DriveState.HEADING_RAD] + 0.5 * turn_radps * dt_s
        state[DriveState.X] += speed_mps * math.cos(heading) * dt_s
        state[DriveState.Y] += speed_mps * math.sin(heading) * dt_s
        state[DriveState.HEADING_RAD] = _wrapped(state[DriveState.HEADING_RAD] + turn_radps * dt_s)
        left_ns -= _STEP_NS


@kernel
def stand(drive: Drive, state: npt.NDArray[np.float64], world: World, time_ns: int, memory: ScanMemory) -> None:
    """Place the rover on the ground under its wheels at a rig time."""
    heading = state[DriveState.HEADING_RAD]
    for wheel in range(_WHEELS):
        ahead = 0.5 * drive.wheelbase_m if wheel < 2 else -0.5 * drive.wheelbase_m
        left = 0.5 * drive.track_m if wheel % 2 == 0 else -0.5 * drive.track_m
        memory.origin_m[wheel, 0] = state[DriveState.X] + ahead * math.cos(heading) - left * math.sin(heading)
        memory.origin_m[wheel, 1] = state[DriveState.Y] + ahead * math.sin(heading) + left * math.cos(heading)
        memory.origin_m[wheel, 2] = state[DriveState.Z] + _ABOVE_M
        memory.direction[wheel, 0] = memory.direction[wheel, 1] = 0.0
        memory.direction[wheel, 2] = -1.0
        memory.time_ns[wheel] = time_ns
    wheels = slice(0, _WHEELS)
    found = memory.range_m[wheels]
    hits = memory.instance[wheels], memory.triangle[wheels]
    cast_rays(world, memory.origin_m[wheels], memory.direction[wheels], memory.time_ns[wheels], _ABOVE_M + _BELOW_M, found, hits[0], hits[1])
    for wheel in range(_WHEELS):
        if not np.isfinite(found[wheel]):
            return
    front, rear = 0.5 * (found[0] + found[1]), 0.5 * (found[2] + found[3])
    left_m, right_m = 0.5 * (found[0] + found[2]), 0.5 * (found[1] + found[3])
    state[DriveState.Z] += _ABOVE_M - 0.5 * (front + rear)
    state[DriveState.PITCH_UP_RAD] = math.atan2(rear - front, drive.wheelbase_m)
    state[DriveState.ROLL_RAD] = math.atan2(right_m - left_m, drive.track_m)


@kernel
def scan(drive: Drive, state: npt.NDArray[np.float64], world: World, time_ns: int, memory: ScanMemory) -> int:
    """Measure a scan; returns the number of ``memory.points``, in the transmitted frame, with ``memory.pose``."""
    turn = _orientation(state)
    x, y, z = rotate(turn, (0.0, 0.0, drive.lidar_height_m))
    rays = drive.direction.shape[0]
    for ray in range(rays):
        ahead = rotate(turn, (float(drive.direction[ray, 0]), float(drive.direction[ray, 1]), float(drive.direction[ray, 2])))
        for axis in range(3):
            memory.direction[ray, axis] = ahead[axis]
        memory.origin_m[ray, 0] = state[DriveState.X] + x
        memory.origin_m[ray, 1] = state[DriveState.Y] + y
        memory.origin_m[ray, 2] = state[DriveState.Z] + z
        memory.time_ns[ray] = time_ns
    all_rays = slice(0, rays)
    hits = memory.range_m[all_rays], memory.instance[all_rays], memory.triangle[all_rays]
    cast_many(world, memory.origin_m[all_rays], memory.direction[all_rays], memory.time_ns[all_rays], drive.range_max_m, hits[0], hits[1], hits[2])
    count = 0
    for ray in range(rays):
        range_m = hits[0][ray]
        if np.isfinite(range_m):
            memory.points[count, 0] = memory.origin_m[ray, 0] + memory.direction[ray, 0] * range_m
            memory.points[count, 1] = memory.origin_m[ray, 2] + memory.direction[ray, 2] * range_m
            memory.points[count, 2] = -(memory.origin_m[ray, 1] + memory.direction[ray, 1] * range_m)
            count += 1
    _write_pose(state, memory.pose)
    return count


@kernel
def _write_pose(state: npt.NDArray[np.float64], pose: npt.NDArray[np.float32]) -> None:
    pose[0], pose[1], pose[2] = state[DriveState.X], state[DriveState.Z], -state[DriveState.Y]
    pose[3] = math.degrees(state[DriveState.ROLL_RAD])
    pose[4] = math.degrees(state[DriveState.HEADING_RAD])
    pose[5] = math.degrees(state[DriveState.PITCH_UP_RAD])


def pose_of(state: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Pose ``float32[6]`` in the transmitted frame."""
    pose = np.zeros(6, np.float32)
    _write_pose(state, pose)
    return pose


def orientation_of(state: npt.NDArray[np.float64]) -> Quaternion:
    """World from rover."""
    w, x, y, z = _orientation(state)
    return w, x, y, z


@kernel
def drive_cycle(
    drive: Drive, state: npt.NDArray[np.float64], world: World, queues: ScanQueues, fleet: Fleet, rover: int, cycle: int, memory: ScanMemory
) -> bool:
    """Drive to the rover's position at a cycle, and put its scan onto the queue; False if the queue is full. Arguments as in ``drive_on``."""
    drive_to(drive, state, world, fleet, rover, cycle, memory)
    count = scan(drive, state, world, cycle * fleet.period_ns[rover], memory)
    return put_scan(queues, rover, cycle, memory.pose, memory.points[:count])


@kernel
def drive_to(drive: Drive, state: npt.NDArray[np.float64], world: World, fleet: Fleet, rover: int, cycle: int, memory: ScanMemory) -> None:
    """Drive to the rover's position at a cycle. Arguments as in ``drive_on``."""
    buttons = load_acquire(fleet.counters, (rover, RoverCount.BUTTONS))
    move(drive, state, buttons, fleet.period_ns[rover])
    stand(drive, state, world, cycle * fleet.period_ns[rover], memory)


@kernel
def scan_lead_ns(period_ns: int) -> int:
    """Time before a cycle at which its scan of ideal rays is begun."""
    return min(int(_LEAD_NS), int(_LEAD_SHARE * period_ns))


@kernel
def drive_on(
    drive: Drive,
    state: npt.NDArray[np.float64],
    world: World,
    queues: ScanQueues,
    fleet: Fleet,
    rover: int,
    epoch_ns: int,
    words: npt.NDArray[np.int64],
    brake: npt.NDArray[np.int64],
    memory: ScanMemory,
) -> None:
    """Drive, and put a scan for each cycle onto the queue, until ``words`` request a stop. For a cycle that is too near, no scan is measured.

    Args:
        drive: Parameters of the rover.
        state: ``float64[7]``, columns by ``DriveState``.
        world: World to drive through.
        queues: Queues for the scans.
        fleet: Arrays with its buttons and period.
        rover: Its row in both.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        words: ``int64[n]``, columns by ``FleetWord``.
        brake: ``int64[8]``, brake of this thread.
        memory: Working memory.
    """
    period_ns = fleet.period_ns[rover]
    lead_ns = scan_lead_ns(period_ns)
    cycle = 1
    while load_acquire(words, (FleetWord.STOP,)) == 0:
        due_ns = cycle * period_ns
        now_ns = monotonic_ns() - epoch_ns
        if now_ns < due_ns - lead_ns:
            doze_until(epoch_ns + due_ns - lead_ns, brake)
            continue
        if now_ns < due_ns:
            drive_cycle(drive, state, world, queues, fleet, rover, cycle, memory)
        else:
            drive_to(drive, state, world, fleet, rover, cycle, memory)
        cycle += 1
