"""Keys of objects that another simulator moves: written by one thread ahead of the render threads, shared by all worlds that edits make of one another.

A slot holds the keys of one object. Key ``n`` is stored twice, in rows ``n % K`` and ``K + n % K`` of its slot, so that any ``K`` keys in a row are contiguous
and sorted, and the search of ``world.geometry.tracks`` is used as it is. Readers use the newer half of them: the other half is what the writer may overwrite
during a read. A key is never changed after a firing at its time was rendered, so a pose is a function of rig time.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import fence_release, store_release
from hilsim.compilation.jit import by_reference, constant, kernel, stage_kernel
from hilsim.errors import require
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.tracks import between_keys, keyed_pose

KEYS = 256
"""Keys of each slot: two seconds of readable keys at 60 Hz."""
CURVE_RATIO = 5.0
"""Largest ratio of the speed between two keys to the bound of the keys' velocities and of the mean velocity: control velocities of the cubic are
``3 * mean - before - after``."""
UNSEEN_M = 1e12
"""Height of an object that is not seen: farther than any ray goes."""
_ONCE = constant(0)


@by_reference
class LiveKeys(NamedTuple):
    """Keys of objects, a slot each; build with ``build_live_keys``.

    Attributes:
        written: ``int64[slots, 8]``, column 0: number of keys written to the slot so far.
        time_ns: ``int64[slots * 2 * keys]``, rig time of each key.
        position_m: ``float64[slots * 2 * keys, 3]`` in the world.
        velocity_mps: ``float64[slots * 2 * keys, 3]`` in the world.
        orientation: ``float64[slots * 2 * keys, 4]``, unit quaternions, world from object.
        is_seen: ``uint8[slots * 2 * keys]``, whether the object is seen from this key to the next one.
        keys: Number of keys kept for each slot.
    """

    written: npt.NDArray[np.int64]
    time_ns: npt.NDArray[np.int64]
    position_m: npt.NDArray[np.float64]
    velocity_mps: npt.NDArray[np.float64]
    orientation: npt.NDArray[np.float64]
    is_seen: npt.NDArray[np.uint8]
    keys: int


class LivePlacement(NamedTuple):
    """Placement of an object that is moved by keys.

    Attributes:
        slot: Slot of the object's keys.
        speed_mps: Bound of the keys' velocities and of the mean velocity from one key to the next.
    """

    slot: int
    speed_mps: float = 100.0


def build_live_keys(slots: int, keys: int = KEYS) -> LiveKeys:
    """Allocate slots without keys.

    Raises:
        ValueError: a count is too small.
    """
    require((slots >= 0, f"slots must be at least 0, got {slots}"), (keys >= 2, f"keys must be at least 2, got {keys}"))
    rows = slots * 2 * keys
    return LiveKeys(
        written=np.zeros((slots, 8), np.int64),
        time_ns=np.zeros(rows, np.int64),
        position_m=np.zeros((rows, 3)),
        velocity_mps=np.zeros((rows, 3)),
        orientation=np.zeros((rows, 4)),
        is_seen=np.zeros(rows, np.uint8),
        keys=keys,
    )


NO_LIVE_KEYS = build_live_keys(0)
"""Keys of a world in which nothing is moved from outside."""


@kernel
def write_key(
    live: LiveKeys,
    slot: int,
    time_ns: int,
    position_m: npt.NDArray[np.float64],
    velocity_mps: npt.NDArray[np.float64],
    orientation: npt.NDArray[np.float64],
    is_seen: bool,  # noqa: FBT001 - kernels take their arguments by place
) -> None:
    """Add a key to a slot.

    Args:
        live: The keys.
        slot: The slot.
        time_ns: Rig time, later than that of the slot's previous key.
        position_m: ``float64[3]`` in the world.
        velocity_mps: ``float64[3]`` in the world.
        orientation: ``float64[4]``, unit quaternion, world from object.
        is_seen: Whether the object is seen from here to its next key.
    """
    count = live.written[slot, 0]
    first = 2 * live.keys * slot + count % live.keys
    fence_release()
    for row in (first, first + live.keys):
        live.time_ns[row] = time_ns
        live.is_seen[row] = is_seen
        for axis in range(3):
            live.position_m[row, axis] = position_m[axis]
            live.velocity_mps[row, axis] = velocity_mps[axis]
        for part in range(4):
            live.orientation[row, part] = orientation[part]
    store_release(live.written, (slot, 0), count + 1)


@kernel
def write_keys(
    live: LiveKeys,
    slot: npt.NDArray[np.int64],
    time_ns: npt.NDArray[np.int64],
    position_m: npt.NDArray[np.float64],
    velocity_mps: npt.NDArray[np.float64],
    orientation: npt.NDArray[np.float64],
    is_seen: npt.NDArray[np.uint8],
) -> None:
    """``write_key`` of ``n`` keys in their order; each argument has ``n`` rows of what ``write_key`` takes."""
    for row in range(slot.size):
        write_key(live, slot[row], time_ns[row], position_m[row], velocity_mps[row], orientation[row], is_seen[row] != 0)


@kernel
def _window(live: LiveKeys, slot: int) -> tuple[int, int]:
    """First row and number of the readable keys of a slot. Rows depend on the count that was read, so no row is read before it."""
    count = live.written[slot, 0]
    window = count if count < live.keys // 2 else live.keys // 2  # noqa: FURB136 - the compiler for GPUs knows no min of integers
    return 2 * live.keys * slot + (count - window) % live.keys, window


@stage_kernel
def live_pose(live: LiveKeys, slot: int, time_ns: int) -> tuple[Vector, Quaternion]:
    """Position in metres and orientation (world from object) at a rig time; ``UNSEEN_M`` high where the object is not seen."""
    first, count = _window(live, slot)
    if count == 0 or time_ns < live.time_ns[first]:
        return (0.0, 0.0, UNSEEN_M), (1.0, 0.0, 0.0, 0.0)
    low, _, _, _ = between_keys(live.time_ns, first, count, _ONCE, time_ns)
    if live.is_seen[low] == 0:
        return (0.0, 0.0, UNSEEN_M), (1.0, 0.0, 0.0, 0.0)
    return keyed_pose(live.time_ns, live.position_m, live.velocity_mps, live.velocity_mps, live.orientation, first, count, _ONCE, time_ns)


@stage_kernel
def live_sphere(live: LiveKeys, slot: int, radius_m: float, speed_mps: float, first_ns: int, last_ns: int) -> tuple[float, float, float, float]:
    """Centre and radius (m) of a sphere that holds an object from one rig time to another.

    Args:
        live: The keys.
        slot: Slot of the object.
        radius_m: Radius of the sphere about the object's origin that contains it.
        speed_mps: Upper bound of the object's speed.
        first_ns: Rig time of the beginning.
        last_ns: Rig time of the end.

    Returns:
        Centre, and the radius: below 0 where the object is not seen at all, infinite where it is not seen throughout.
    """
    first, count = _window(live, slot)
    if count == 0 or last_ns < live.time_ns[first]:
        return 0.0, 0.0, 0.0, -1.0
    low, _, _, _ = between_keys(live.time_ns, first, count, _ONCE, first_ns)
    high, _, _, _ = between_keys(live.time_ns, first, count, _ONCE, last_ns)
    seen = 0
    for row in range(low, high + 1):
        seen += live.is_seen[row]
    if seen == 0:
        return 0.0, 0.0, 0.0, -1.0
    if seen <= high - low or first_ns < live.time_ns[first]:
        return 0.0, 0.0, 0.0, np.inf
    middle_ns = first_ns + (last_ns - first_ns) // 2
    (x, y, z), _ = keyed_pose(live.time_ns, live.position_m, live.velocity_mps, live.velocity_mps, live.orientation, first, count, _ONCE, middle_ns)
    return x, y, z, radius_m + speed_mps * (last_ns - middle_ns + 1) * 1e-9
