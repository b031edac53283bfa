"""Keys of bodies that a program moves step by step: each pose becomes a key that never changes afterwards.

A body that is given no pose in a step stays where it is. While it stays, its last key is enough; where it comes to rest, or leaves again, a key without
velocities is put before the next one, so that the keys alone give the poses that were rendered.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hilsim.offline.snapshot import STILL, Motion
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.live_keys import LiveKeys, write_keys
from hilsim.world.geometry.rotations import conjugate, multiply
from hilsim.world.platforms.live import STATE_SIZE, LivePose, write_state

_PLATFORM = 0
"""Number of the platform among the bodies; objects have others."""
_FLOAT32 = struct.Struct("<3f")
_SPEED_MARGIN = 1.0 + 1e-9


@dataclass(frozen=True, kw_only=True)
class Key:
    """A committed pose.

    Attributes:
        time_ns: Rig time.
        motion: Pose with velocities.
        is_seen: Whether an object is seen from here on.
    """

    time_ns: int
    motion: Motion
    is_seen: bool = True


Record = Callable[[int, Key], None]
"""Writer of a key of a body of a number."""


class KeyBuffer:
    """Keys of objects that are written together: calling a kernel for each takes longer than all else.

    Args:
        live: Keys to write.
    """

    def __init__(self, live: LiveKeys) -> None:
        self._live = live
        self._rows: list[tuple[int, Key]] = []

    def add(self, slot: int, key: Key) -> None:
        """Take a key of a slot."""
        self._rows.append((slot, key))

    def flush(self) -> None:
        """Write the keys, for renderers to find."""
        if not self._rows:
            return
        keys = [key for _, key in self._rows]
        write_keys(
            self._live,
            np.array([slot for slot, _ in self._rows], np.int64),
            np.array([key.time_ns for key in keys], np.int64),
            np.array([key.motion.position_m for key in keys]),
            np.array([key.motion.velocity_mps or STILL for key in keys]),
            np.array([key.motion.orientation for key in keys]),
            np.array([key.is_seen for key in keys], np.uint8),
        )
        self._rows.clear()


class BodyKeys:
    """Keys of one body in the order of their times.

    Attributes:
        newest: The newest key; None before the first one.
    """

    def __init__(self, number: int, record: Record | None) -> None:
        self.newest: Key | None = None
        self._number, self._record = number, record
        self._held_ns = -1

    def _write(self, key: Key) -> None:
        """Store a key where renderers find it."""
        raise NotImplementedError

    def commit(self, time_ns: int, motion: Motion) -> None:
        """Add a key; velocities that are not known are the mean ones since the key before.

        Raises:
            ValueError: the time is not later than that of the key before.
        """
        before = self.newest
        if before is not None:
            if time_ns <= max(before.time_ns, self._held_ns):
                raise ValueError(f"a pose must be later than the one before at {before.time_ns} ns, got {time_ns} ns")
            if self._held_ns > before.time_ns:
                before = self._put(Key(time_ns=self._held_ns, motion=before.motion, is_seen=before.is_seen))
        self._put(Key(time_ns=time_ns, motion=_with_velocities(before, time_ns, motion)))

    def stay(self, time_ns: int) -> None:
        """Leave the body where it is up to a time."""
        newest = self.newest
        if newest is None or time_ns <= newest.time_ns:
            return
        if newest.motion.velocity_mps != STILL or newest.motion.rates_radps != STILL:
            self._put(Key(time_ns=time_ns, motion=replace(newest.motion, velocity_mps=STILL, rates_radps=STILL), is_seen=newest.is_seen))
        self._held_ns = time_ns

    def _put(self, key: Key) -> Key:
        self._write(key)
        if self._record is not None:
            self._record(self._number, key)
        self.newest = key
        return key


class PlatformKeys(BodyKeys):
    """Keys of the platform.

    Before the first pose the platform moves as at the first pose.

    Args:
        live: States to write.
        record: Writer of a recording.
    """

    def __init__(self, live: LivePose, record: Record | None = None) -> None:
        super().__init__(_PLATFORM, record)
        self._live, self._state = live, np.zeros(STATE_SIZE)

    def commit(self, time_ns: int, motion: Motion) -> None:
        """Add a key, the first one also at rig time 0.

        Raises:
            ValueError: the time is not later than that of the key before.
        """
        if self.newest is None and time_ns > 0:
            super().commit(0, _carried_back(motion, 1e-9 * time_ns))
        super().commit(time_ns, motion)

    def _write(self, key: Key) -> None:
        motion, state = key.motion, self._state
        state[0:3], state[3:6] = motion.position_m, motion.velocity_mps or STILL
        state[6:10], state[10:13] = motion.orientation, motion.rates_radps or STILL
        write_state(self._live, key.time_ns, state)


class ObjectKeys(BodyKeys):
    """Keys of an object, which is seen from its first pose on.

    Args:
        buffer: Takes the keys; its owner writes them.
        slot: Slot of the object.
        speed_mps: Largest speed of the object, which its renderers rely on.
        name: Name of the object for messages.
        number: Id of the object in messages and recordings.
        record: Writer of a recording.
    """

    def __init__(self, buffer: KeyBuffer, slot: int, speed_mps: float, name: str, number: int, record: Record | None = None) -> None:
        super().__init__(number, record)
        self._buffer, self._slot, self._most_mps, self._name = buffer, slot, speed_mps, name

    def commit(self, time_ns: int, motion: Motion) -> None:
        """Add a key.

        Raises:
            ValueError: the time is not later than that of the key before, or the object would be faster than its largest speed.
        """
        before = self.newest
        velocity = math.hypot(*(motion.velocity_mps or STILL))
        mean = (
            math.dist(before.motion.position_m, motion.position_m) / (1e-9 * (time_ns - before.time_ns))
            if before and time_ns > before.time_ns
            else 0.0
        )
        if before is not None and not before.is_seen:
            mean = 0.0
        if max(velocity, mean) > self._most_mps * _SPEED_MARGIN:
            raise ValueError(f"speed of {self._name} must be at most {self._most_mps:g} m/s, got {max(velocity, mean):.6g} m/s at {time_ns} ns")
        if before is not None and not before.is_seen:
            motion = replace(motion, velocity_mps=motion.velocity_mps or STILL)
        super().commit(time_ns, motion)

    def vanish(self, time_ns: int) -> None:
        """Make the object unseen from a time on, until its next pose."""
        newest = self.newest
        if newest is not None and newest.is_seen:
            time_ns = max(time_ns, newest.time_ns + 1)
            self._put(Key(time_ns=time_ns, motion=replace(newest.motion, velocity_mps=STILL, rates_radps=STILL), is_seen=False))

    def _write(self, key: Key) -> None:
        self._buffer.add(self._slot, key)


def _with_velocities(before: Key | None, time_ns: int, motion: Motion) -> Motion:
    """Motion whose velocities are known, in float32 as recordings of poses have them."""
    velocity, rates = STILL, STILL
    if before is not None and (motion.velocity_mps is None or motion.rates_radps is None):
        passed_s = 1e-9 * (time_ns - before.time_ns)
        (x0, y0, z0), (x1, y1, z1) = before.motion.position_m, motion.position_m
        velocity = (x1 - x0) / passed_s, (y1 - y0) / passed_s, (z1 - z0) / passed_s
        w, x, y, z = multiply(conjugate(before.motion.orientation), motion.orientation)
        sine = math.hypot(x, y, z)
        angle = 2.0 * math.atan2(sine, w) if w >= 0.0 else 2.0 * math.atan2(-sine, -w)
        scale = angle / (sine * passed_s) if sine > 0.0 else 0.0
        rates = scale * x, scale * y, scale * z
    velocity = _rounded(velocity if motion.velocity_mps is None else motion.velocity_mps)
    rates = _rounded(rates if motion.rates_radps is None else motion.rates_radps)
    if velocity == motion.velocity_mps and rates == motion.rates_radps:
        return motion
    return replace(motion, velocity_mps=velocity, rates_radps=rates)


def _rounded(vector: Vector) -> Vector:
    x, y, z = _FLOAT32.unpack(_FLOAT32.pack(*vector))
    return x, y, z


def _carried_back(motion: Motion, passed_s: float) -> Motion:
    """Motion some time before, at the same velocities."""
    (x, y, z), (vx, vy, vz) = motion.position_m, motion.velocity_mps or STILL
    p, q, r = rates = motion.rates_radps or STILL
    rate = math.hypot(p, q, r)
    turn = motion.orientation
    if rate > 0.0:
        half = -0.5 * rate * passed_s
        share = math.sin(half) / rate
        turn = multiply(turn, (math.cos(half), share * p, share * q, share * r))
    return Motion(
        position_m=(x - passed_s * vx, y - passed_s * vy, z - passed_s * vz), orientation=turn, velocity_mps=(vx, vy, vz), rates_radps=rates
    )
