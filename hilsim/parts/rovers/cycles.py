"""The loop that sends rovers' cycles: it makes their packets a little ahead of the deadlines and puts them into the rings, without the GIL.

Cycle k of a rover is due k periods after rig time 0, independent of earlier cycles: no cycle delays the next. The pose is due at once, the chunks of the scan
follow at even intervals, and the telemetry is due ``TELL_NS`` after the last of them. All other packets are made ``AHEAD_NS`` before their deadline, but the telemetry not
before its cycle has begun: it reports every command received until then.

A cycle whose scan is not ready in time, or that could not begin in time, is counted and skipped. The scan of a file is then sent with the next cycle; a driving rover's scan of that cycle is skipped too.
"""

import math

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire
from hilsim.compilation.jit import constant, kernel
from hilsim.parts.rovers.fleet import Error, Fleet, FleetWord, RoverCount, RoverPurpose, Row, drift_on, drifts, take_command
from hilsim.parts.rovers.protocol import CHUNK_HEADER_SIZE, CHUNK_POINTS, POINT_SIZE, POSE_SIZE, TELEMETRY_SIZE, Draft, chunk_count, chunk_points
from hilsim.parts.rovers.scan_queue import ANY_CYCLE, QueueWord, ScanQueues, take_scan, waiting_scans
from hilsim.rng import normal_pair
from hilsim.transmit.brake import doze_until
from hilsim.transmit.libc import monotonic_ns
from hilsim.transmit.ring import Rings, push
from hilsim.world.geometry.frames import Vector

AHEAD_NS = constant(20_000_000)
TELL_NS = constant(5_000_000)
"""Time from the last chunk to the telemetry, which is made in this time."""
_SCAN_WAIT_NS = constant(5_000_000)
"""Time before its deadline at which a cycle's scan must be ready."""
_LATE_NS = constant(20_000_000)
_FIRST_CHUNK_NS = constant(20_000)
_WIDEST_CHUNK_NS = constant(250_000)
_CYCLE_SHARE = 0.8
"""Largest share of a period taken by the chunks."""
_NAP_NS = constant(8_000_000)
_POLL_NS = constant(500_000)
_NO_POSE_NS = constant(0)
_NOW = constant(-(2**62))
_POSE_STAGE = constant(0)
_HEADING_AXIS = constant(4)
_FIELDS_PER_POINT = 2  # pairs of random numbers


@kernel
def time_stamp_s(cycle: int, period_ns: int) -> float:
    """Time stamp of all packets of a cycle: rig time in seconds."""
    return cycle * period_ns / 1e9


@kernel
def chunk_distance_ns(chunks: int, period_ns: int) -> int:
    """Interval between two chunks of a scan."""
    return min(int(_WIDEST_CHUNK_NS), int(_CYCLE_SHARE * (period_ns - TELL_NS)) // max(chunks, 1))


@kernel
def _noisy(value: float, sigma: float, draw: float) -> np.float32:
    return np.float32(value + np.float32(sigma * draw))


@kernel
def _believed(pose: npt.NDArray[np.float32], error: npt.NDArray[np.float64], turned: float, still: float, point: Vector) -> Vector:
    """Coordinates of a point for a rover with a wrong position estimate; ``turned`` and ``still`` are sine and cosine of its heading error."""
    east, south = point[0] - pose[0], point[2] - pose[2]
    return (
        pose[0] + error[Error.EAST_M] + still * east + turned * south,
        point[1] + error[Error.UP_M],
        pose[2] + error[Error.SOUTH_M] - turned * east + still * south,
    )


@kernel
def _write_pose(
    queues: ScanQueues,
    fleet: Fleet,
    rover: int,
    slot: int,
    seed: np.uint64,
    float32: npt.NDArray[np.float32],
) -> None:
    cycle, number = fleet.counters[rover, RoverCount.CYCLE], fleet.number[rover]
    is_drifting = drifts(fleet, rover)
    if is_drifting:
        drift_on(fleet, rover, seed)
    for pair in range(3):
        draws = normal_pair(seed, number, 3 * cycle + pair, RoverPurpose.POSE)
        for one in range(2):
            axis = 2 * pair + one
            value = queues.pose[rover, slot, axis]
            if is_drifting and axis < 3:
                value = np.float32(value + fleet.error[rover, axis])
            elif is_drifting and axis == _HEADING_AXIS:
                value = np.float32(value + math.degrees(fleet.error[rover, Error.HEADING_RAD]))
            sigma = fleet.noise[rover, 0 if axis < 3 else 1]
            float32[2 + axis] = value if sigma == 0.0 else _noisy(value, sigma, draws[one])


@kernel
def _write_points(
    queues: ScanQueues,
    fleet: Fleet,
    rover: int,
    slot: int,
    chunk: int,
    count: int,
    seed: np.uint64,
    float32: npt.NDArray[np.float32],
) -> None:
    cycle, number, sigma = fleet.counters[rover, RoverCount.CYCLE], fleet.number[rover], fleet.noise[rover, 2]
    room = queues.points.shape[1]
    error, is_drifting = fleet.error[rover], drifts(fleet, rover)
    turned, still = math.sin(error[Error.HEADING_RAD]), math.cos(error[Error.HEADING_RAD])
    for place in range(count):
        point = chunk * CHUNK_POINTS + place
        row = (queues.first[rover, slot] + point) % room
        at = 5 + 3 * place
        x, y, z = queues.points[rover, row, 0], queues.points[rover, row, 1], queues.points[rover, row, 2]
        if is_drifting:
            east, up, south = _believed(queues.pose[rover, slot], error, turned, still, (float(x), float(y), float(z)))
            x, y, z = np.float32(east), np.float32(up), np.float32(south)
        if sigma == 0.0:
            float32[at], float32[at + 1], float32[at + 2] = x, y, z
            continue
        index = (cycle << 20) + _FIELDS_PER_POINT * point
        first, second = normal_pair(seed, number, index, RoverPurpose.POINT)
        third, _ = normal_pair(seed, number, index + 1, RoverPurpose.POINT)
        float32[at], float32[at + 1], float32[at + 2] = _noisy(x, sigma, first), _noisy(y, sigma, second), _noisy(z, sigma, third)


@kernel
def _begin(fleet: Fleet, rover: int, count: int) -> None:
    fleet.counters[rover, RoverCount.CYCLE] += 1
    fleet.counters[rover, RoverCount.STAGE] = _POSE_STAGE
    fleet.counters[rover, count] += 1


@kernel
def _has_room(rings: Rings, row: int) -> bool:
    return bool(rings.tail[row, 0] - load_acquire(rings.head, (row, 0)) < rings.deadline_ns.shape[1])


@kernel
def _time_to_begin(queues: ScanQueues, fleet: Fleet, rover: int, begin_ns: int, now_ns: int) -> int:
    """Time of the next attempt to begin a cycle; ``_NOW`` where it must begin now."""
    if now_ns < begin_ns - AHEAD_NS:
        return begin_ns - AHEAD_NS
    if now_ns > begin_ns + _LATE_NS:
        _begin(fleet, rover, RoverCount.LATE)
        return now_ns
    while waiting_scans(queues, rover) > 0:
        wanted = queues.cycle[rover, queues.taken[rover, QueueWord.SCANS] % queues.size.shape[1]]
        if wanted in (ANY_CYCLE, fleet.counters[rover, RoverCount.CYCLE]):
            return int(_NOW)
        if wanted > fleet.counters[rover, RoverCount.CYCLE]:
            break
        take_scan(queues, rover)  # its cycle was skipped
    if now_ns < begin_ns - _SCAN_WAIT_NS:
        return now_ns + _POLL_NS
    _begin(fleet, rover, RoverCount.EMPTY)
    return now_ns


@kernel
def _put_next(queues: ScanQueues, fleet: Fleet, rover: int, rings: Rings, begin_ns: int, now_ns: int, seed: np.uint64, draft: Draft) -> int:
    """Put the next packet of the current cycle into its ring, if its time has come; returns the time of the next call."""
    period_ns, stage, cycle = fleet.period_ns[rover], fleet.counters[rover, RoverCount.STAGE], fleet.counters[rover, RoverCount.CYCLE]
    slot = queues.taken[rover, QueueWord.SCANS] % queues.size.shape[1]
    points = queues.size[rover, slot]
    chunks = chunk_count(points)
    chunk = stage - 1
    due_ns = begin_ns if stage == _POSE_STAGE else begin_ns + _FIRST_CHUNK_NS + max(min(chunk, chunks - 1), 0) * chunk_distance_ns(chunks, period_ns)
    column = Row.POSE if stage == _POSE_STAGE else Row.LIDAR if stage <= chunks else Row.TELEMETRY
    made_ns = due_ns if column == Row.TELEMETRY else due_ns - AHEAD_NS
    if now_ns < made_ns:
        return int(made_ns)
    row = fleet.row[rover, column]
    if not _has_room(rings, row):
        return now_ns + _POLL_NS
    draft.float64[0] = time_stamp_s(cycle, period_ns)
    if column == Row.POSE:
        _write_pose(queues, fleet, rover, slot, seed, draft.float32)
        push(rings, row, due_ns, _NO_POSE_NS, draft.payload, POSE_SIZE)
    elif column == Row.LIDAR:
        count = chunk_points(points, chunk)
        draft.uint32[2], draft.uint32[3], draft.uint32[4] = chunk, chunks, count
        _write_points(queues, fleet, rover, slot, chunk, count, seed, draft.float32)
        push(rings, row, due_ns, _NO_POSE_NS, draft.payload, CHUNK_HEADER_SIZE + POINT_SIZE * count)
    else:
        take_command(fleet, rover)
        draft.payload[8] = fleet.counters[rover, RoverCount.BUTTONS]
        push(rings, row, due_ns + TELL_NS, _NO_POSE_NS, draft.payload, TELEMETRY_SIZE)
        take_scan(queues, rover)
        _begin(fleet, rover, RoverCount.CYCLES)
        return now_ns
    fleet.counters[rover, RoverCount.STAGE] += 1
    return now_ns


@kernel
def advance(queues: ScanQueues, fleet: Fleet, rover: int, rings: Rings, epoch_ns: int, now_ns: int, seed: np.uint64, draft: Draft) -> int:
    """Put a rover's next packet into its ring, if its time has come; returns the time of the next call: ``now_ns`` after any progress.

    Args:
        queues: Scans; this is their only consumer.
        fleet: The rovers.
        rover: Row of the rover.
        rings: Rings to put into; this is the only producer of its rows.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        now_ns: Current CLOCK_MONOTONIC time.
        seed: Random seed ``uint64`` of the rig.
        draft: Working memory.
    """
    begin_ns = epoch_ns + fleet.counters[rover, RoverCount.CYCLE] * fleet.period_ns[rover]
    if fleet.counters[rover, RoverCount.STAGE] == _POSE_STAGE:
        again_ns = _time_to_begin(queues, fleet, rover, begin_ns, now_ns)
        if again_ns != _NOW:
            return again_ns
    return _put_next(queues, fleet, rover, rings, begin_ns, now_ns, seed, draft)


@kernel
def send_cycles(
    queues: ScanQueues,
    fleet: Fleet,
    rings: Rings,
    epoch_ns: int,
    seed: np.uint64,
    words: npt.NDArray[np.int64],
    brake: npt.NDArray[np.int64],
    draft: Draft,
) -> None:
    """Send the cycles of all rovers until ``words`` request a stop.

    Args:
        queues: Their scans; this is their only consumer.
        fleet: The rovers.
        rings: Rings to put into; this is the only producer of their rows.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        seed: Random seed ``uint64`` of the rig.
        words: ``int64[n]``, columns by ``FleetWord``.
        brake: ``int64[8]``, brake of this thread.
        draft: Working memory.
    """
    while load_acquire(words, (FleetWord.STOP,)) == 0:
        now_ns = monotonic_ns()
        wake_ns = now_ns + _NAP_NS
        for rover in range(fleet.number.size):
            again_ns = now_ns
            while again_ns <= now_ns:
                again_ns = advance(queues, fleet, rover, rings, epoch_ns, now_ns, seed, draft)
            wake_ns = min(wake_ns, again_ns)
        doze_until(wake_ns, brake)
