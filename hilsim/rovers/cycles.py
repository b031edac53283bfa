"""The loop that sends rovers' cycles: it makes their packets a little ahead of the deadlines and puts them into the rings, without the GIL.

Cycle k of a rover is due k periods after rig time 0, whatever came before: no cycle makes the next one late. In it the pose is due at once, the chunks of the scan
follow at even distances, and the telemetry is due ``TELL_NS`` after the last of them. All else is made ``AHEAD_NS`` ahead of its deadline, but the telemetry not
before its cycle has begun: it tells of every command that came before that.

A cycle whose scan is not there in time, or that could not be begun in time, is counted and left out. The scan of a file then comes with the next one, and what a rover saw for that cycle is left out too.
"""

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim._atomics import load_acquire, store_release
from hilsim._jit import by_reference, constant, kernel
from hilsim.geometry.frames import Vector
from hilsim.protocols.rover import CHUNK_HEADER_SIZE, CHUNK_POINTS, POINT_SIZE, POSE_SIZE, TELEMETRY_SIZE, Draft, chunk_count, chunk_points
from hilsim.rng import Purpose, normal_pair
from hilsim.rovers.scan_queue import ANY_CYCLE, QueueWord, ScanQueues, take_scan, waiting_scans
from hilsim.rovers.specs import RoverSpec
from hilsim.transmit.brake import doze_until
from hilsim.transmit.libc import monotonic_ns
from hilsim.transmit.ring import Rings, push

AHEAD_NS = constant(20_000_000)
TELL_NS = constant(5_000_000)
"""From the last chunk to the telemetry, which is made in this time."""
_SCAN_WAIT_NS = constant(5_000_000)
"""So long before its deadline a cycle's scan must be there."""
_LATE_NS = constant(20_000_000)
_FIRST_CHUNK_NS = constant(20_000)
_WIDEST_CHUNK_NS = constant(250_000)
_CYCLE_SHARE = 0.8
"""Of a period that the chunks take at most."""
_NAP_NS = constant(8_000_000)
_POLL_NS = constant(500_000)
_NO_POSE_NS = constant(0)
_NOW = constant(-(2**62))
_POSE_STAGE = constant(0)
_COMMAND_SLOTS = 1024
_HEADING_AXIS = constant(4)
_FIELDS_PER_POINT = 2  # pairs of draws
NO_CHANGE = -1
"""Of a command without a byte: it takes a cycle, and changes nothing."""


class FleetWord(IntEnum):
    """Elements of the words that the loop shares with the rest of the daemon."""

    STOP = 0


class RoverCount(IntEnum):
    """Columns of the loop's counts and state, of each rover."""

    CYCLE = 0
    """The next one, or the one under way."""
    STAGE = 1
    """0: the pose is next; then each chunk; then the telemetry."""
    BUTTONS = 2
    CYCLES = 3
    """Cycles whose packets were all put into the rings."""
    LATE = 4
    """Cycles left out because they could not be begun in time."""
    EMPTY = 5
    """Cycles left out because there was no scan."""
    OBEYED = 6
    """Commands that came to the telemetry."""


class Row(IntEnum):
    """Columns of ``Fleet.row``."""

    POSE = 0
    LIDAR = 1
    TELEMETRY = 2


class CommandWord(IntEnum):
    """Columns of a rover's row of commands; behind them the commands."""

    TAKEN = 0
    PUT = 8
    FIRST = 16


class Drift(IntEnum):
    """Columns of ``Fleet.drift``: standard deviations, and what of an error is left after a cycle."""

    POSITION_M = 0
    HEIGHT_M = 1
    HEADING_RAD = 2
    KEPT = 3


class Error(IntEnum):
    """Columns of ``Fleet.error``: how far a rover believes to be from where it is, in the frame that is sent, and of which cycle that is."""

    EAST_M = 0
    UP_M = 1
    SOUTH_M = 2
    HEADING_RAD = 3
    CYCLE = 4


@by_reference
class Fleet(NamedTuple):
    """R rovers.

    Attributes:
        row: ``int64[R, 3]``, their flows' rows of the rings, columns by ``Row``.
        number: ``int64[R]``.
        period_ns: ``int64[R]``.
        noise: ``float64[R, 3]``: of position, rotation, points.
        drift: ``float64[R, 4]``, columns by ``Drift``.
        error: ``float64[R, 5]``, columns by ``Error``; written by the loop.
        counters: ``int64[R, 8]``, columns by ``RoverCount``; written by the loop.
        command: ``int64[R, 16 + 1024]``, columns by ``CommandWord``.
    """

    row: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    period_ns: npt.NDArray[np.int64]
    noise: npt.NDArray[np.float64]
    drift: npt.NDArray[np.float64]
    error: npt.NDArray[np.float64]
    counters: npt.NDArray[np.int64]
    command: npt.NDArray[np.int64]


def allocate_fleet(rovers: int) -> Fleet:
    """Of rovers that have neither rows nor numbers yet; their first cycle is the one that begins a period after rig time 0, so that no time stamp is 0."""
    counters = np.zeros((rovers, 8), np.int64)
    counters[:, RoverCount.CYCLE] = 1
    return Fleet(
        row=np.zeros((rovers, len(Row)), np.int64),
        number=np.zeros(rovers, np.int64),
        period_ns=np.zeros(rovers, np.int64),
        noise=np.zeros((rovers, 3)),
        drift=np.zeros((rovers, len(Drift))),
        error=np.zeros((rovers, len(Error))),
        counters=counters,
        command=np.zeros((rovers, CommandWord.FIRST + _COMMAND_SLOTS), np.int64),
    )


def set_up(fleet: Fleet, row: int, rover: RoverSpec) -> None:
    """Make a row a rover's."""
    fleet.number[row], fleet.period_ns[row] = rover.number, rover.period_ns
    noise = rover.added_noise
    fleet.noise[row] = noise.position_m, noise.rotation_deg, noise.point_m
    if rover.drift is not None:
        kept = math.exp(-rover.period_ns / (rover.drift.time_s * 1e9))
        fleet.drift[row] = rover.drift.position_m, rover.drift.height_m, math.radians(rover.drift.heading_deg), kept


@kernel
def put_command(fleet: Fleet, rover: int, buttons: int) -> bool:
    """Put a command (0 to 255, or ``NO_CHANGE``) behind those that wait; False when too many do."""
    put = fleet.command[rover, CommandWord.PUT]
    slots = fleet.command.shape[1] - CommandWord.FIRST
    if put - load_acquire(fleet.command, (rover, CommandWord.TAKEN)) >= slots:
        return False
    fleet.command[rover, CommandWord.FIRST + put % slots] = buttons
    store_release(fleet.command, (rover, CommandWord.PUT), put + 1)
    return True


@kernel
def _take_command(fleet: Fleet, rover: int) -> None:
    """Obey the oldest command that waits: one a cycle."""
    taken = fleet.command[rover, CommandWord.TAKEN]
    if load_acquire(fleet.command, (rover, CommandWord.PUT)) == taken:
        return
    slots = fleet.command.shape[1] - CommandWord.FIRST
    buttons = fleet.command[rover, CommandWord.FIRST + taken % slots]
    if buttons >= 0:
        store_release(fleet.counters, (rover, RoverCount.BUTTONS), buttons)
    fleet.counters[rover, RoverCount.OBEYED] += 1
    store_release(fleet.command, (rover, CommandWord.TAKEN), taken + 1)


@kernel
def time_stamp_s(cycle: int, period_ns: int) -> float:
    """What all packets of a cycle bear: seconds of rig time."""
    return cycle * period_ns / 1e9


@kernel
def chunk_distance_ns(chunks: int, period_ns: int) -> int:
    """Between two chunks of a scan."""
    return min(int(_WIDEST_CHUNK_NS), int(_CYCLE_SHARE * (period_ns - TELL_NS)) // max(chunks, 1))


@kernel
def _noisy(value: float, sigma: float, draw: float) -> np.float32:
    return np.float32(value + np.float32(sigma * draw))


@kernel
def _drifts(fleet: Fleet, rover: int) -> bool:
    drift = fleet.drift[rover]
    return bool(drift[Drift.POSITION_M] > 0.0 or drift[Drift.HEIGHT_M] > 0.0 or drift[Drift.HEADING_RAD] > 0.0)


@kernel
def drift_on(fleet: Fleet, rover: int, seed: np.uint64) -> None:
    """Bring a rover's error to its cycle: a first-order Gauss-Markov process, the same however many cycles are passed over."""
    drift, error, number = fleet.drift[rover], fleet.error[rover], fleet.number[rover]
    kept = drift[Drift.KEPT]
    while error[Error.CYCLE] < fleet.counters[rover, RoverCount.CYCLE]:
        error[Error.CYCLE] += 1.0
        cycle = int(error[Error.CYCLE])
        old, new = (kept, math.sqrt(1.0 - kept * kept)) if cycle > 1 else (0.0, 1.0)
        east, south = normal_pair(seed, number, 2 * cycle, Purpose.ROVER_DRIFT)
        up, heading = normal_pair(seed, number, 2 * cycle + 1, Purpose.ROVER_DRIFT)
        error[Error.EAST_M] = old * error[Error.EAST_M] + new * drift[Drift.POSITION_M] * east
        error[Error.SOUTH_M] = old * error[Error.SOUTH_M] + new * drift[Drift.POSITION_M] * south
        error[Error.UP_M] = old * error[Error.UP_M] + new * drift[Drift.HEIGHT_M] * up
        error[Error.HEADING_RAD] = old * error[Error.HEADING_RAD] + new * drift[Drift.HEADING_RAD] * heading


@kernel
def _believed(queues: ScanQueues, fleet: Fleet, rover: int, slot: int, point: Vector) -> Vector:
    """Where a point is to a rover that believes to be elsewhere."""
    error, pose = fleet.error[rover], queues.pose[rover, slot]
    east, south = point[0] - pose[0], point[2] - pose[2]
    turned, still = math.sin(error[Error.HEADING_RAD]), math.cos(error[Error.HEADING_RAD])
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
    drifts = _drifts(fleet, rover)
    if drifts:
        drift_on(fleet, rover, seed)
    for pair in range(3):
        draws = normal_pair(seed, number, 3 * cycle + pair, Purpose.ROVER_POSE)
        for one in range(2):
            axis = 2 * pair + one
            value = queues.pose[rover, slot, axis]
            if drifts and axis < 3:
                value = np.float32(value + fleet.error[rover, axis])
            elif drifts and axis == _HEADING_AXIS:
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
    drifts = _drifts(fleet, rover)
    for place in range(count):
        point = chunk * CHUNK_POINTS + place
        row = (queues.first[rover, slot] + point) % room
        at = 5 + 3 * place
        x, y, z = queues.points[rover, row, 0], queues.points[rover, row, 1], queues.points[rover, row, 2]
        if drifts:
            east, up, south = _believed(queues, fleet, rover, slot, (float(x), float(y), float(z)))
            x, y, z = np.float32(east), np.float32(up), np.float32(south)
        if sigma == 0.0:
            float32[at], float32[at + 1], float32[at + 2] = x, y, z
            continue
        index = (cycle << 20) + _FIELDS_PER_POINT * point
        first, second = normal_pair(seed, number, index, Purpose.ROVER_POINT)
        third, _ = normal_pair(seed, number, index + 1, Purpose.ROVER_POINT)
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
    """When to come again about a cycle that has not begun; ``_NOW`` where it is to begin."""
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
        take_scan(queues, rover)  # its cycle was left out
    if now_ns < begin_ns - _SCAN_WAIT_NS:
        return now_ns + _POLL_NS
    _begin(fleet, rover, RoverCount.EMPTY)
    return now_ns


@kernel
def _put_next(queues: ScanQueues, fleet: Fleet, rover: int, rings: Rings, begin_ns: int, now_ns: int, seed: np.uint64, draft: Draft) -> int:
    """Put the next packet of a cycle under way into its ring, if its time has come; returns when to come again."""
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
        _take_command(fleet, rover)
        draft.payload[8] = fleet.counters[rover, RoverCount.BUTTONS]
        push(rings, row, due_ns + TELL_NS, _NO_POSE_NS, draft.payload, TELEMETRY_SIZE)
        take_scan(queues, rover)
        _begin(fleet, rover, RoverCount.CYCLES)
        return now_ns
    fleet.counters[rover, RoverCount.STAGE] += 1
    return now_ns


@kernel
def advance(queues: ScanQueues, fleet: Fleet, rover: int, rings: Rings, epoch_ns: int, now_ns: int, seed: np.uint64, draft: Draft) -> int:
    """Put a rover's next packet into its ring, if its time has come; returns when to come again: at ``now_ns``, where something was done.

    Args:
        queues: Scans; this is their only consumer.
        fleet: The rovers.
        rover: Which.
        rings: Where to; this is the only producer of its rows.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        now_ns: CLOCK_MONOTONIC.
        seed: ``uint64`` of the rig.
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
    """Send the cycles of all rovers until ``words`` ask to stop.

    Args:
        queues: Their scans; this is their only consumer.
        fleet: The rovers.
        rings: Where to; this is the only producer of their rows.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        seed: ``uint64`` of the rig.
        words: ``int64[n]``, columns by ``FleetWord``.
        brake: ``int64[8]``, of this thread.
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
