"""Bodies that another simulator moves: poses received, and the keys that are committed of them ahead of the render threads.

A key is committed before any firing at its time is rendered, and never changes. Where no pose has come in time, an extrapolated key is committed in its place.
"""

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire, shared_words, store_release
from hilsim.compilation.jit import by_reference, kernel
from hilsim.parts.external.messages import HAS_RATES, HAS_VELOCITY, IS_HIDDEN
from hilsim.world.geometry.live_keys import LiveKeys, write_key
from hilsim.world.geometry.rotations import conjugate, multiply, rotation_vector, turned_by
from hilsim.world.platforms.live import STATE_SIZE, LivePose, write_state

STEP_NS = 4_000_000
"""Time from the latest firing that may be rendered to an extrapolated key."""
SPACING_NS = 500_000
"""Shortest time between two keys of the platform; poses that are closer are skipped, so that half a ring holds the delay."""
OBJECT_SPACING_NS = 2_000_000
"""The same for objects."""
_ALLOWANCE_M = 1e-3
"""Distance by which a pose may be too far away: senders round."""
LOG_SLOTS = 1 << 16


class BodyWord(IntEnum):
    """Columns of a body's words."""

    ID = 0
    SLOT = 1
    """Slot of the object's keys; -1 for the platform."""
    HAS_POSE = 2
    RECEIVED_NS = 3
    """Rig time of the newest pose received."""
    ARRIVED_NS = 4
    """Rig time of its arrival."""
    COMMITTED = 5
    """Number of keys committed."""
    COMMITTED_NS = 6
    """Rig time of the newest one."""
    IS_SEEN = 7
    """Whether the newest key says that the object is seen."""
    INTERVAL_NS = 8
    """Time between the two newest poses, 0 without."""
    IS_HIDDEN = 9
    """Whether the sender wants the object not to be seen, or it was removed."""
    HAS_LEAPT = 10
    """Whether poses were refused since the newest one, because they were too far away."""


class BodyCount(IntEnum):
    """Columns of counts."""

    POSES = 0
    KEYS = 1
    EXTRAPOLATED = 2
    LATE = 3
    OLD = 4
    EARLY = 5
    DENSE = 6
    LEAPS = 7
    SILENCES = 8
    UNLOGGED = 9


_ID, _SLOT, _HAS_POSE, _RECEIVED, _ARRIVED, _COMMITTED, _COMMITTED_NS, _IS_SEEN, _INTERVAL, _IS_HIDDEN, _HAS_LEAPT = map(int, BodyWord)
_POSES, _KEYS, _EXTRAPOLATED, _LATE, _OLD, _EARLY, _DENSE, _LEAPS, _SILENCES, _UNLOGGED = map(int, BodyCount)


@by_reference
class Bodies(NamedTuple):
    """Bodies, and where their keys go; written by one thread.

    Attributes:
        words: ``int64[n, 16]``, ``BodyWord`` of each body; row 0 is the platform.
        known: ``int64[8]``, column 0: number of bodies known; column 1: rig time up to which firings were rendered before the thread began.
        newest: ``float64[n, 13]``, newest state received, as in ``world.platforms.live``.
        slope: ``float64[n, 6]``, mean velocity and mean rates between the two poses before.
        committed: ``float64[n, 13]``, newest state committed.
        speed_mps: ``float64[n]``, largest speed of each body.
        counts: ``int64[16]``, ``BodyCount``.
        live: States of the platform.
        keys: Keys of objects.
        log_count: ``int64[8]``, column 0: number of keys logged so far; column 1: number of keys that the recorder has taken; column 2: whether one takes them.
        log_id: ``int64[m]``, id of each key logged.
        log_ns: ``int64[m]``, its rig time.
        log_seen: ``int64[m]``, whether the object is seen.
        log_state: ``float64[m, 13]``, its state.
        extrapolate_ns: Longest time for which motion is carried on.
        ahead_ns: Time from now to the latest firing that may have been rendered.
        margin_ns: Time from now to which keys are committed, above ``ahead_ns``.
        delay_ns: Time from a pose to its key.
        coasts: Whether the platform goes on while the sender is silent.
    """

    words: npt.NDArray[np.int64]
    known: npt.NDArray[np.int64]
    newest: npt.NDArray[np.float64]
    slope: npt.NDArray[np.float64]
    committed: npt.NDArray[np.float64]
    speed_mps: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]
    live: LivePose
    keys: LiveKeys
    log_count: npt.NDArray[np.int64]
    log_id: npt.NDArray[np.int64]
    log_ns: npt.NDArray[np.int64]
    log_seen: npt.NDArray[np.int64]
    log_state: npt.NDArray[np.float64]
    extrapolate_ns: int
    ahead_ns: int
    margin_ns: int
    delay_ns: int
    coasts: bool


def build_bodies(
    live: LivePose,
    keys: LiveKeys,
    *,
    speed_mps: float,
    extrapolate_ns: int,
    ahead_ns: int,
    margin_ns: int,
    delay_ns: int,
    coasts: bool = False,
    is_logged: bool = False,
) -> Bodies:
    """Allocate the platform's body, at rest at the first state of ``live``, and room for one of each slot of keys."""
    rows = 1 + len(keys.written)
    bodies = Bodies(
        words=shared_words(BodyWord, rows),
        known=np.zeros(8, np.int64),
        newest=np.zeros((rows, STATE_SIZE)),
        slope=np.zeros((rows, 6)),
        committed=np.zeros((rows, STATE_SIZE)),
        speed_mps=np.full(rows, speed_mps),
        counts=shared_words(BodyCount),
        live=live,
        keys=keys,
        log_count=np.zeros(8, np.int64),
        log_id=np.zeros(LOG_SLOTS if is_logged else 1, np.int64),
        log_ns=np.zeros(LOG_SLOTS if is_logged else 1, np.int64),
        log_seen=np.zeros(LOG_SLOTS if is_logged else 1, np.int64),
        log_state=np.zeros((LOG_SLOTS if is_logged else 1, STATE_SIZE)),
        extrapolate_ns=extrapolate_ns,
        ahead_ns=ahead_ns,
        margin_ns=margin_ns,
        delay_ns=delay_ns,
        coasts=coasts,
    )
    bodies.log_count[2] = is_logged
    bodies.words[0, _SLOT] = -1
    bodies.committed[0] = live.state[0]  # where it is until its first pose
    bodies.known[0] = 1
    return bodies


def add_body(bodies: Bodies, identity: int, slot: int, speed_mps: float) -> int:
    """Make an object known to the thread that receives poses; returns its row. Only one thread may add bodies."""
    row = int(bodies.known[0])
    bodies.words[row] = 0
    bodies.words[row, _ID], bodies.words[row, _SLOT] = identity, slot
    bodies.speed_mps[row] = speed_mps
    store_known(bodies, row + 1)
    return row


@kernel
def store_known(bodies: Bodies, count: int) -> None:
    """Publish the number of bodies."""
    store_release(bodies.known, (0,), count)


@kernel
def find_body(bodies: Bodies, identity: int, guess: int) -> int:
    """Row of a body, -1 for an unknown id; ``guess`` is looked at first, as records mostly come in the same order."""
    known = load_acquire(bodies.known, (0,))
    if 0 <= guess < known and bodies.words[guess, _ID] == identity:
        return guess
    for row in range(known):
        if bodies.words[row, _ID] == identity:
            return row
    return -1


@kernel
def _log(bodies: Bodies, row: int, time_ns: int, is_seen: bool, state: npt.NDArray[np.float64]) -> None:  # noqa: FBT001 - kernels take their arguments by place
    if bodies.log_count[2] == 0:
        return
    count, slots = bodies.log_count[0], bodies.log_ns.size
    if count - load_acquire(bodies.log_count, (1,)) >= slots:
        bodies.counts[_UNLOGGED] += 1
        return
    at = count % slots
    bodies.log_id[at] = bodies.words[row, _ID]
    bodies.log_ns[at] = time_ns
    bodies.log_seen[at] = is_seen
    bodies.log_state[at] = state
    store_release(bodies.log_count, (0,), count + 1)


@kernel
def _write(bodies: Bodies, row: int, time_ns: int, is_seen: bool) -> None:  # noqa: FBT001 - as above
    """Write ``committed`` as a key."""
    words, state = bodies.words[row], bodies.committed[row]
    if words[_SLOT] < 0:
        write_state(bodies.live, time_ns, state)
    else:
        write_key(bodies.keys, words[_SLOT], time_ns, state[:3], state[3:6], state[6:10], is_seen)
    _log(bodies, row, time_ns, is_seen, state)
    words[_COMMITTED_NS] = time_ns
    words[_COMMITTED] += 1
    words[_IS_SEEN] = is_seen
    bodies.counts[_KEYS] += 1


@kernel
def _distance(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    x, y, z = one[0] - other[0], one[1] - other[1], one[2] - other[2]
    return math.sqrt(x * x + y * y + z * z)


@kernel
def commit(bodies: Bodies, row: int, time_ns: int, is_seen: bool, state: npt.NDArray[np.float64]) -> None:  # noqa: FBT001 - as above
    """Commit a key, at least two nanoseconds after the body's newest one.

    A body that would be too fast leaps within a nanosecond instead; an object is not seen in it. Velocities are rounded to float32, as recordings have them.
    """
    words = bodies.words[row]
    is_platform = words[_SLOT] < 0
    if words[_COMMITTED] > 0 or is_platform:
        most_m = bodies.speed_mps[row] * 1e-9 * (time_ns - words[_COMMITTED_NS])
        if words[_COMMITTED] == 0 or _distance(bodies.committed[row], state) > most_m + _ALLOWANCE_M:
            bodies.committed[row, 3:6] = 0.0
            bodies.committed[row, 10:13] = 0.0
            _write(bodies, row, time_ns - 1, is_platform)
    for column in range(STATE_SIZE):
        bodies.committed[row, column] = state[column]
    for axis in range(3):
        bodies.committed[row, 3 + axis] = np.float64(np.float32(state[3 + axis]))
        bodies.committed[row, 10 + axis] = np.float64(np.float32(state[10 + axis]))
    _write(bodies, row, time_ns, is_seen)


@kernel
def _complete(bodies: Bodies, row: int, interval_ns: int, flags: int, state: npt.NDArray[np.float64]) -> None:
    """Fill in the velocity and the rates that a pose lacks: the slope at its end of the parabola through the last three poses."""
    step_s = 1e-9 * interval_ns
    newest, slope = bodies.newest[row], bodies.slope[row]
    before_ns = bodies.words[row, _INTERVAL]
    weight = interval_ns / (interval_ns + before_ns) if before_ns > 0 else 0.0
    turn = rotation_vector(
        multiply(conjugate((newest[6], newest[7], newest[8], newest[9])), (state[6], state[7], state[8], state[9])),
    )
    for axis in range(3):
        mean = (state[axis] - newest[axis]) / step_s
        if flags & HAS_VELOCITY == 0:
            state[3 + axis] = mean + weight * (mean - slope[axis])
        slope[axis] = mean
        rate = turn[axis] / step_s
        if flags & HAS_RATES == 0:
            state[10 + axis] = rate + weight * (rate - slope[3 + axis])
        slope[3 + axis] = rate


@kernel
def take_pose(bodies: Bodies, row: int, time_ns: int, flags: int, state: npt.NDArray[np.float64], now_ns: int, follows: bool) -> None:  # noqa: FBT001 - as above
    """Take a pose that has arrived, and commit it as a key if it is in time.

    Args:
        bodies: The bodies.
        row: The body.
        time_ns: Rig time of the pose, with the delay.
        flags: Flags of its record.
        state: ``float64[13]``; what the record does not give is filled in.
        now_ns: Present rig time.
        follows: Whether the body follows its poses already, or waits at its first one.
    """
    words = bodies.words[row]
    spacing_ns = SPACING_NS if words[_SLOT] < 0 else OBJECT_SPACING_NS
    interval_ns = time_ns - words[_RECEIVED]
    if words[_HAS_POSE] != 0:
        if interval_ns <= 0:
            bodies.counts[_OLD] += 1
            return
        if interval_ns < spacing_ns:
            bodies.counts[_DENSE] += 1
            return
        if _distance(bodies.newest[row], state) > bodies.speed_mps[row] * 1e-9 * interval_ns + _ALLOWANCE_M:
            bodies.counts[_LEAPS] += 1
            words[_HAS_LEAPT] = 1
            return
    if words[_HAS_POSE] != 0 and words[_HAS_LEAPT] == 0:
        _complete(bodies, row, interval_ns, flags, state)
        words[_INTERVAL] = interval_ns
    else:
        words[_INTERVAL] = 0  # its velocity is unknown
    words[_HAS_LEAPT] = 0
    speed = math.sqrt(state[3] * state[3] + state[4] * state[4] + state[5] * state[5])
    if speed > bodies.speed_mps[row]:
        state[3:6] *= bodies.speed_mps[row] / speed
    bodies.newest[row] = state
    words[_HAS_POSE] = 1
    words[_RECEIVED] = time_ns
    words[_ARRIVED] = now_ns
    words[_IS_HIDDEN] = 1 if flags & IS_HIDDEN != 0 and words[_SLOT] >= 0 else 0
    bodies.counts[_POSES] += 1
    if not follows:
        return
    if time_ns <= max(now_ns + bodies.ahead_ns, bodies.known[1]) or (words[_COMMITTED] > 0 and time_ns <= words[_COMMITTED_NS] + 1):
        bodies.counts[_LATE] += 1
        return
    commit(bodies, row, time_ns, words[_IS_HIDDEN] == 0, state)


@kernel
def _carried_state(bodies: Bodies, row: int, time_ns: int, follows: bool, state: npt.NDArray[np.float64]) -> None:  # noqa: FBT001 - as above
    """State of a body at a rig time after its newest pose: carried on with its velocity and rates, for a bounded time."""
    words = bodies.words[row]
    waits = not follows or words[_HAS_POSE] == 0
    newest = bodies.committed[row] if waits and words[_COMMITTED] > 0 else bodies.newest[row]
    state[:] = newest
    ahead_ns = 0 if waits else time_ns - words[_RECEIVED]
    goes_on = not waits and (ahead_ns <= bodies.extrapolate_ns or (bodies.coasts and words[_SLOT] < 0))
    ahead_s = 1e-9 * (ahead_ns if goes_on else min(ahead_ns, bodies.extrapolate_ns))
    for axis in range(3):
        state[axis] += ahead_s * newest[3 + axis]
        if not goes_on:
            state[3 + axis] = 0.0
            state[10 + axis] = 0.0
    turn_rad = (ahead_s * newest[10], ahead_s * newest[11], ahead_s * newest[12])
    state[6], state[7], state[8], state[9] = turned_by((newest[6], newest[7], newest[8], newest[9]), turn_rad)


@kernel
def extend(bodies: Bodies, now_ns: int, follows: bool, state: npt.NDArray[np.float64]) -> int:  # noqa: FBT001 - as above
    """Commit an extrapolated key of each body whose newest key is too near; returns the rig time at which the next one is needed.

    Args:
        bodies: The bodies.
        now_ns: Present rig time.
        follows: As in ``take_pose``.
        state: ``float64[13]``, scratch.
    """
    needed_ns = now_ns + 1_000_000_000
    until_ns = max(now_ns + bodies.ahead_ns, bodies.known[1]) + bodies.margin_ns
    for row in range(load_acquire(bodies.known, (0,))):
        words = bodies.words[row]
        if words[_HAS_POSE] == 0 and words[_COMMITTED] == 0:
            continue
        is_platform = words[_SLOT] < 0
        is_silent = now_ns - words[_ARRIVED] > bodies.extrapolate_ns
        is_seen = is_platform or not (is_silent or words[_IS_HIDDEN] != 0)
        if not is_seen and (words[_COMMITTED] == 0 or words[_IS_SEEN] == 0):
            continue  # it is gone, and no key is needed until it is seen again
        if words[_COMMITTED] == 0 or words[_COMMITTED_NS] < until_ns or (not is_platform and words[_IS_SEEN] == 0):
            time_ns = max(until_ns + STEP_NS, words[_COMMITTED_NS] + 2)
            _carried_state(bodies, row, time_ns, follows, state)
            commit(bodies, row, time_ns, is_seen, state)
            bodies.counts[_EXTRAPOLATED] += 1
            if not is_seen:
                bodies.counts[_SILENCES] += is_silent
                continue
        needed_ns = min(needed_ns, words[_COMMITTED_NS] - bodies.ahead_ns - bodies.margin_ns)
    return needed_ns


@kernel
def forget_poses(bodies: Bodies) -> None:
    """Wait for first poses again: another sender has begun, or the sender's clock has been set."""
    for row in range(load_acquire(bodies.known, (0,))):
        bodies.words[row, _HAS_POSE] = 0
