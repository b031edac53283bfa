"""Poses of an autopilot from its telemetry: ODOMETRY, or ATTITUDE_QUATERNION and LOCAL_POSITION_NED.

An autopilot's world is NED and its body FRD; snapshots are ENU and FLU, with the autopilot's local origin as the origin.
Attitude and position come at rates of their own: each of them gives a snapshot, for which the other one is carried on with its rates.
"""

import math
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hilsim.errors import PacketError
from hilsim.offline.snapshot import Motion, Snapshot
from hilsim.protocols.mavlink.codec import read_payload
from hilsim.protocols.mavlink.frames import FrameState, allocate_stream, append, next_frame
from hilsim.protocols.mavlink.messages import ATTITUDE_QUATERNION, LOCAL_POSITION_NED, ODOMETRY, Message, build_draft
from hilsim.world.geometry.frames import Quaternion, Vector, frd_from_flu, ned_from_enu
from hilsim.world.geometry.rotations import conjugate, multiply, ned_from_frd, normalise, rotate, turned_by

_LARGEST_DATAGRAM = 65_536
_NS_PER_MS, _NS_PER_US = 1_000_000, 1_000
_MAX_NS = 500_000_000
"""Longest time for which attitude or position is carried on: an autopilot that streams neither faster than 2 Hz is not followed."""
_LOCAL_NED, _BODY_NED, _BODY_FRD = 1, 8, 12
_DOWNWARD, _UPWARD = (_LOCAL_NED, 20), (4, 21)
"""``MAV_FRAME`` of a pose: local NED and FRD, whose z is down; local ENU and FLU."""


class _Attitude(NamedTuple):
    time_ns: int
    orientation: Quaternion
    rates_radps: Vector


class _Position(NamedTuple):
    time_ns: int
    position_m: Vector
    velocity_mps: Vector


class MavlinkPoses:
    """Snapshots from the telemetry of one autopilot; that of others is counted and passed over.

    Attributes:
        system: Id of the followed system; None until the first message.
        others: Messages of other systems, and of times before the newest.
    """

    def __init__(self, system: int | None = None) -> None:
        """Follow a system by its id, or the first one that sends."""
        self.system = system
        self.others = 0
        self._stream = allocate_stream(1 << 17)
        self._drafts = {message.id: build_draft(message) for message in (ODOMETRY, ATTITUDE_QUATERNION, LOCAL_POSITION_NED)}
        self._attitude: _Attitude | None = None
        self._position: _Position | None = None
        self._newest_ns = -1

    def feed(self, data: bytes) -> Iterator[Snapshot]:
        """Yield the snapshots of received bytes.

        Raises:
            PacketError: a message is in a frame that is not supported, or has a value out of bounds.
        """
        append(self._stream, np.frombuffer(data, np.uint8))
        while (frame := next_frame(self._stream)).state != FrameState.NONE:
            draft = self._drafts.get(frame.id)
            if draft is None or frame.state != FrameState.CHECKED:
                continue
            if self.system is None:
                self.system = int(frame.system)
            if frame.system != self.system:
                self.others += 1
                continue
            read_payload(self._stream.buffer, frame, draft.payload)
            found = self._snapshot(frame.id, draft.record[0])
            if found is not None and found.time_ns > self._newest_ns:
                self._newest_ns = found.time_ns
                yield found
            elif found is not None:
                self.others += 1

    def _snapshot(self, number: int, record: Any) -> Snapshot | None:
        if number == ODOMETRY.id:
            return _odometry(record)
        if number == ATTITUDE_QUATERNION.id:
            turn = _unit(ATTITUDE_QUATERNION, *(float(record[name]) for name in ("q1", "q2", "q3", "q4")))
            rates = frd_from_flu(_vector(record, "rollspeed", "pitchspeed", "yawspeed"))
            self._attitude = _Attitude(int(record["time_boot_ms"]) * _NS_PER_MS, ned_from_frd(turn), rates)
        else:
            position, velocity = ned_from_enu(_vector(record, "x", "y", "z")), ned_from_enu(_vector(record, "vx", "vy", "vz"))
            self._position = _Position(int(record["time_boot_ms"]) * _NS_PER_MS, position, velocity)
        return self._joined()

    def _joined(self) -> Snapshot | None:
        """Attitude and position at the time of the newer one; None: one has not come, or long ago."""
        attitude, position = self._attitude, self._position
        if attitude is None or position is None or abs(attitude.time_ns - position.time_ns) > _MAX_NS:
            return None
        time_ns = max(attitude.time_ns, position.time_ns)
        passed_s = (time_ns - position.time_ns) * 1e-9
        turned_s = (time_ns - attitude.time_ns) * 1e-9
        (x, y, z), (vx, vy, vz), (p, q, r) = position.position_m, position.velocity_mps, attitude.rates_radps
        return _at(
            time_ns,
            LOCAL_POSITION_NED,
            (x + passed_s * vx, y + passed_s * vy, z + passed_s * vz),
            turned_by(attitude.orientation, (p * turned_s, q * turned_s, r * turned_s)),
            position.velocity_mps,
            attitude.rates_radps,
        )


def _odometry(record: Any) -> Snapshot:
    frame, child = int(record["frame_id"]), int(record["child_frame_id"])
    if frame not in _DOWNWARD + _UPWARD or child not in {_BODY_FRD, _BODY_NED, frame}:
        raise PacketError(
            "ODOMETRY.frame_id must be MAV_FRAME 1, 4, 20 or 21 (local NED, ENU, FRD, FLU) and child_frame_id 12 (body FRD), 8 or the same,"
            f" got {frame} and {child}"
        )
    position, velocity = _vector(record, "x", "y", "z"), _vector(record, "vx", "vy", "vz")
    rates = _vector(record, "rollspeed", "pitchspeed", "yawspeed")
    turn = _unit(ODOMETRY, *map(float, record["q"]))  # frame from body FRD
    if child != frame:
        velocity = rotate(turn, velocity)
    else:
        rates = rotate(conjugate(turn), rates)
    if frame in _DOWNWARD:
        orientation, position, velocity = ned_from_frd(turn), ned_from_enu(position), ned_from_enu(velocity)
    else:
        orientation = multiply(turn, (0.0, 1.0, 0.0, 0.0))  # body FRD from body FLU
    return _at(int(record["time_usec"]) * _NS_PER_US, ODOMETRY, position, orientation, velocity, frd_from_flu(rates))


def _vector(record: Any, x: str, y: str, z: str) -> Vector:
    return float(record[x]), float(record[y]), float(record[z])


def _unit(message: Message, *parts: float) -> Quaternion:
    """A quaternion of float32, made a unit one.

    Raises:
        PacketError: it is not finite, or far from a unit quaternion.
    """
    length = math.hypot(*parts)
    if not abs(length - 1.0) < 1e-3:
        raise PacketError(f"quaternion of message {message.id} must have length 1, got {length:.6g}")
    w, x, y, z = parts
    return normalise((w, x, y, z))


def _at(time_ns: int, message: Message, position_m: Vector, orientation: Quaternion, velocity_mps: Vector, rates_radps: Vector) -> Snapshot:
    try:
        motion = Motion(position_m=position_m, orientation=orientation, velocity_mps=velocity_mps, rates_radps=rates_radps)
    except ValueError as error:
        raise PacketError(f"message {message.id}: {error}") from error
    return Snapshot(time_ns=time_ns, platform=motion)


def mavlink_snapshots(listening: socket.socket, system: int | None = None) -> Iterator[Snapshot]:
    """Yield the snapshots of a UDP socket until it is closed or its time-out passes without a datagram.

    Raises:
        PacketError: a message cannot be used.
    """
    poses = MavlinkPoses(system)
    while True:
        try:
            data = listening.recv(_LARGEST_DATAGRAM)
        except TimeoutError:
            return
        except OSError:
            if listening.fileno() == -1:
                return
            raise
        yield from poses.feed(data)
