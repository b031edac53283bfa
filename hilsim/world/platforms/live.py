"""Current pose of a simulated vehicle: states written by the flight thread, read by the render threads of its sensors.

A sensor renders a packet a few milliseconds before the packet's firings, so the pose of a firing is a little ahead of the newest state: it is extrapolated with the
state's velocity and rates. Over 4 ms the error is 0.1 mm at 10 m/s^2 and 0.4 mrad at 50 rad/s^2. Between two states the pose is a cubic Hermite curve, of
orientations too. The flight thread writes states as it flies; poses from outside are written ahead of the render threads (by a part that moves).
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import fence_acquire, fence_release, load_acquire, store_release
from hilsim.compilation.jit import by_reference, kernel
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.rotations import multiply, normalise, turned_between

SLOTS = 1024
"""Number of states kept: about a second at 1 kHz."""
STATE_SIZE = 13
"""Size of a state: position (m), velocity (m/s), orientation (w, x, y, z; world from body), rates (rad/s, body)."""
MAX_NS = 50_000_000
"""Longest extrapolation: when the flight thread stalls, the vehicle stops after this time."""
_COUNT = (0,)
_READ_TRIES = 8


@by_reference
class LivePose(NamedTuple):
    """States of a vehicle, newest last; written by one thread.

    Attributes:
        written: ``int64[8]``; column 0 is the number of states written so far.
        time_ns: ``int64[SLOTS]``, rig time of each state.
        state: ``float64[SLOTS, 13]``, the states.
    """

    written: npt.NDArray[np.int64]
    time_ns: npt.NDArray[np.int64]
    state: npt.NDArray[np.float64]


def build_live_pose(slots: int = SLOTS) -> LivePose:
    """Allocate states; until the first one is written, the pose is the world's origin, level, facing east.

    Args:
        slots: Number of states kept; readers use the newer half of them.
    """
    state = np.zeros((slots, STATE_SIZE))
    state[:, 6] = 1.0
    return LivePose(np.zeros(8, np.int64), np.zeros(slots, np.int64), state)


def no_live_pose() -> LivePose:
    """Placeholder for a platform that follows a track."""
    return LivePose(np.zeros(8, np.int64), np.zeros(1, np.int64), np.zeros((1, STATE_SIZE)))


@kernel
def write_state(live: LivePose, time_ns: int, state: npt.NDArray[np.float64]) -> None:
    """Add a state, ``float64[13]``, at a rig time later than the previous one."""
    count = live.written[0]
    slot = count % live.time_ns.size
    fence_release()
    live.time_ns[slot] = time_ns
    for column in range(STATE_SIZE):
        live.state[slot, column] = state[column]
    store_release(live.written, _COUNT, count + 1)


def newest_state(live: LivePose) -> tuple[int, tuple[float, ...]] | None:
    """Rig time and values of the newest state, for Python; None before the first one.

    It takes some microseconds, so no writer passes through half of the slots meanwhile, unless the reader is stopped for half a second.
    """
    count = int(live.written[0])
    if count == 0:
        return None
    slot = (count - 1) % live.time_ns.size
    return int(live.time_ns[slot]), tuple(live.state[slot].tolist())


@kernel
def _carried(state: npt.NDArray[np.float64], ahead_s: float) -> tuple[Vector, Quaternion]:
    """Pose extrapolated (or back) from a state with its velocity and rates."""
    position = (state[0] + ahead_s * state[3], state[1] + ahead_s * state[4], state[2] + ahead_s * state[5])
    rate = math.sqrt(state[10] * state[10] + state[11] * state[11] + state[12] * state[12])
    turn = (state[6], state[7], state[8], state[9])
    half = 0.5 * rate * ahead_s
    if half == 0.0:
        return position, turn
    share = math.sin(half) / rate
    return position, normalise(multiply(turn, (math.cos(half), share * state[10], share * state[11], share * state[12])))


@kernel
def _between(before: npt.NDArray[np.float64], after: npt.NDArray[np.float64], ahead_ns: int, step_ns: int) -> tuple[Vector, Quaternion]:
    """Pose ``ahead_ns`` after a state and before the next one, ``step_ns`` later: a cubic Hermite curve."""
    s, step_s = ahead_ns / step_ns, 1e-9 * step_ns
    # Increments from the first state keep world coordinates of 1e6 m exact to the last digit.
    rise = s * s * (3.0 - 2.0 * s)
    leave = s * (1.0 - s) * (1.0 - s) * step_s
    arrive = s * s * (s - 1.0) * step_s
    x = before[0] + rise * (after[0] - before[0]) + leave * before[3] + arrive * after[3]
    y = before[1] + rise * (after[1] - before[1]) + leave * before[4] + arrive * after[4]
    z = before[2] + rise * (after[2] - before[2]) + leave * before[5] + arrive * after[5]
    turn = turned_between(
        (before[6], before[7], before[8], before[9]),
        (after[6], after[7], after[8], after[9]),
        (step_s * before[10], step_s * before[11], step_s * before[12]),
        (step_s * after[10], step_s * after[11], step_s * after[12]),
        s,
    )
    return (x, y, z), turn


@kernel
def _is_overtaken(live: LivePose, count: int) -> bool:
    """Whether the writer may have overwritten states during a read that started at a count: after a stop of the reader of half a second or more."""
    fence_acquire()
    passed = load_acquire(live.written, _COUNT) - count
    return passed > 0 and passed >= live.time_ns.size // 2


@kernel
def _number_at(live: LivePose, time_ns: int, count: int) -> int:
    """Number of the newest state at or before a rig time, of the newest ``count``; of the oldest readable state where there is none."""
    slots = live.time_ns.size
    oldest = max(count - slots // 2, 0)  # the other half is what a writer may overwrite during this read
    at, later, step = count - 1, count, 1
    while at > oldest and live.time_ns[at % slots] > time_ns:  # most readers ask for a time next to the newest
        later = at
        at = max(at - step, oldest)
        step *= 2
    while later - at > 1:
        middle = (at + later) // 2
        if live.time_ns[middle % slots] <= time_ns:
            at = middle
        else:
            later = middle
    return at


@kernel
def _state_at(live: LivePose, time_ns: int, count: int) -> tuple[Vector, Quaternion]:
    """Pose at a rig time from the newest ``count`` states."""
    slots = live.time_ns.size
    if count == 0:
        return _carried(live.state[0], 0.0)
    at = _number_at(live, time_ns, count)
    slot = at % slots
    ahead_ns = time_ns - live.time_ns[slot]
    if at == count - 1 or ahead_ns < 0:
        return _carried(live.state[slot], 1e-9 * min(max(ahead_ns, -MAX_NS), MAX_NS))
    following = (at + 1) % slots
    return _between(live.state[slot], live.state[following], ahead_ns, live.time_ns[following] - live.time_ns[slot])


@kernel
def _motion_at(live: LivePose, time_ns: int, count: int) -> tuple[Vector, Vector]:
    """Position and velocity at a rig time from the newest ``count`` states."""
    state = live.state[_number_at(live, time_ns, count) % live.time_ns.size if count > 0 else 0]
    return (state[0], state[1], state[2]), (state[3], state[4], state[5])


@kernel
def live_state(live: LivePose, time_ns: int) -> tuple[Vector, Quaternion]:
    """Position in metres and orientation (world from body) at a rig time."""
    count = load_acquire(live.written, _COUNT)
    found = _state_at(live, time_ns, count)
    for _ in range(_READ_TRIES):
        if not _is_overtaken(live, count):
            break
        count = load_acquire(live.written, _COUNT)
        found = _state_at(live, time_ns, count)
    return found


@kernel
def live_motion(live: LivePose, time_ns: int) -> tuple[Vector, Vector]:
    """Position in metres and velocity in m/s of the newest state at or before a rig time."""
    count = load_acquire(live.written, _COUNT)
    found = _motion_at(live, time_ns, count)
    for _ in range(_READ_TRIES):
        if not _is_overtaken(live, count):
            break
        count = load_acquire(live.written, _COUNT)
        found = _motion_at(live, time_ns, count)
    return found
