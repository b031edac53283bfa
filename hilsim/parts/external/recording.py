"""Recordings of committed keys: messages of one record each, whose time is rig time, in the order in which the keys were committed.

The list of committed keys is all that sensors knew, so a rig that replays it sends the same packets.
"""

import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import publish
from hilsim.errors import AssetError, CaptureError
from hilsim.offline.pose_keys import Key
from hilsim.offline.snapshot import STILL
from hilsim.parts.external.bodies import Bodies
from hilsim.parts.external.limits import RECORDED_POSES
from hilsim.parts.external.messages import HAS_RATES, HAS_VELOCITY, HEADER_DTYPE, IS_HIDDEN, MAGIC, POSE_DTYPE, VERSION, MessageKind
from hilsim.world.geometry.live_keys import LiveKeys, build_live_keys, write_key
from hilsim.world.platforms.live import STATE_SIZE, LivePose, build_live_pose, write_state

KEY_DTYPE = np.dtype([("header", HEADER_DTYPE), ("pose", POSE_DTYPE)])
_PERIOD_S = 0.1
_UNIT_TOLERANCE = 1e-9
_LARGEST_ID = (1 << 32) - 1


def key_records(identity: npt.ArrayLike, time_ns: npt.ArrayLike, is_seen: npt.ArrayLike, state: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """Records of a recording, ``KEY_DTYPE``, from arrays of ids, rig times, whether an object is seen, and states ``float64[n, 13]``."""
    records = np.zeros(len(state), KEY_DTYPE)
    header, pose = records["header"], records["pose"]
    header["magic"], header["version"], header["kind"], header["count"] = MAGIC, VERSION, MessageKind.POSES, 1
    header["time_ns"], header["sequence"] = time_ns, np.arange(len(state)) & 0xFFFFFFFF
    pose["id"], pose["flags"] = identity, np.where(np.asarray(is_seen, bool), 0, IS_HIDDEN) | HAS_VELOCITY | HAS_RATES
    pose["position_m"], pose["velocity_mps"] = state[:, :3], state[:, 3:6]
    pose["orientation"], pose["rates_radps"] = state[:, 6:10], state[:, 10:]
    return records


class KeyRecorder:
    """Writer of a recording: a thread takes committed keys from the log of ``Bodies``, and does not delay who commits them.

    Attributes:
        fault: Reason that the recording has ended early, empty while it goes on.
    """

    def __init__(self, path: Path, bodies: Bodies) -> None:
        """Create or overwrite ``path``.

        Raises:
            CaptureError: the file cannot be created.
        """
        self._bodies, self._ends, self.fault = bodies, threading.Event(), ""
        try:
            self._file = path.open("wb")
        except OSError as error:
            raise CaptureError(f"{path}: external.record must be a file that can be written, got {error.strerror}") from error
        self._path = path
        state = bodies.committed[:1]
        self._file.write(key_records([0], [0], [True], state).tobytes())  # where the platform is until its first pose
        self._thread = threading.Thread(target=self._run, name="external-record", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write what is left, and end."""
        self._ends.set()
        self._thread.join()
        with suppress(OSError):
            self._file.close()

    def _run(self) -> None:
        while True:
            has_ended = self._ends.wait(_PERIOD_S)
            self._drain()
            if has_ended:
                return

    def _drain(self) -> None:
        bodies = self._bodies
        done, count = int(bodies.log_count[1]), int(bodies.log_count[0])
        if done == count:
            return
        rows = np.arange(done, count) % len(bodies.log_ns)
        records = key_records(bodies.log_id[rows], bodies.log_ns[rows], bodies.log_seen[rows], bodies.log_state[rows])
        if not self.fault:
            try:
                self._file.write(records.tobytes())
                self._file.flush()
            except OSError as error:
                self.fault = f"{self._path}: {error.strerror}"
        publish(bodies.log_count, 1, count)


class KeyFile:
    """Recording of committed keys, which ``external.file`` replays.

    Args:
        path: File, which is created or overwritten.

    Raises:
        CaptureError: it cannot be created.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise CaptureError(f"{path}: external.record must be a file that can be written, got {error.strerror}") from error
        self._path = path
        weakref.finalize(self, self._file.close)

    def write(self, number: int, key: Key) -> None:
        """Add a key of a body.

        Raises:
            CaptureError: the file cannot be written.
        """
        if number > _LARGEST_ID:
            return
        motion = key.motion
        state = np.array([[*motion.position_m, *(motion.velocity_mps or STILL), *motion.orientation, *(motion.rates_radps or STILL)]])
        try:
            self._file.write(key_records([number], [key.time_ns], [key.is_seen], state).tobytes())
        except OSError as error:
            raise CaptureError(f"{self._path}: cannot be written: {error.strerror}") from error


class RecordedKeys(NamedTuple):
    """Keys of a recording, for rendering.

    Attributes:
        live: States of the platform, all readable.
        keys: Keys of objects, all readable.
        ids: Id of the object of each slot.
    """

    live: LivePose
    keys: LiveKeys
    ids: tuple[int, ...]


def load_recording(path: Path, declared: Sequence[int]) -> RecordedKeys:
    """Read a recording.

    Args:
        path: The file.
        declared: Ids of the first slots; those of the file that are not among them follow.

    Raises:
        AssetError: it cannot be read, has no key of the platform, or has faults; the message names the first of each kind.
    """
    records = _read(path)
    identity, time_ns = records["pose"]["id"], records["header"]["time_ns"]
    faults = _faults(records)
    slots = {each: slot for slot, each in enumerate(dict.fromkeys((*declared, *(each for each in identity.tolist() if each != 0))))}
    rows_of = {each: np.flatnonzero(identity == each) for each in (0, *slots)}
    for each, rows in rows_of.items():
        late = np.flatnonzero(np.diff(time_ns[rows]) <= 0)
        if len(late):
            faults.append(f"times of id {each} must rise, got {time_ns[rows[late[0] + 1]]} after {time_ns[rows[late[0]]]}")
    if not len(rows_of[0]):
        faults.append("it must have a pose of the platform (id 0), got none")
    if faults:
        raise AssetError("\n".join(f"{path}: {fault}" for fault in faults))
    live = build_live_pose(2 * len(rows_of[0]))
    for row, state in zip(rows_of[0], _states(records[rows_of[0]]), strict=True):
        write_state(live, int(time_ns[row]), state)
    most = max((len(rows_of[each]) for each in slots), default=1)
    keys = build_live_keys(len(slots), 2 * max(most, 1))
    for each, slot in slots.items():
        for row, state in zip(rows_of[each], _states(records[rows_of[each]]), strict=True):
            is_seen = not int(records["pose"]["flags"][row]) & IS_HIDDEN
            write_key(keys, slot, int(time_ns[row]), state[:3], state[3:6], state[6:10], is_seen)
    return RecordedKeys(live, keys, tuple(slots))


def _read(path: Path) -> npt.NDArray[Any]:
    try:
        size = path.stat().st_size
        RECORDED_POSES.enforce(size // KEY_DTYPE.itemsize, str(path), AssetError)
        data = path.read_bytes()
    except OSError as error:
        raise AssetError(f"{path}: must be a recording of poses, got {error.strerror}") from error
    return np.frombuffer(data[: len(data) // KEY_DTYPE.itemsize * KEY_DTYPE.itemsize], KEY_DTYPE)


def _faults(records: npt.NDArray[Any]) -> list[str]:
    header, pose = records["header"], records["pose"]
    states = _states(records)
    rules = (
        (header["magic"] == MAGIC, 'magic must be "HSXP"'),
        ((header["version"] == VERSION) & (header["kind"] == MessageKind.POSES) & (header["count"] == 1), "messages must be of one pose, version 1"),
        (header["time_ns"] >= 0, "time_ns must be at least 0"),
        (np.isfinite(states).all(axis=1), "poses must be finite"),
        (np.abs(np.linalg.norm(pose["orientation"], axis=1) - 1.0) <= _UNIT_TOLERANCE, "orientation must be a unit quaternion"),
    )
    return [f"{text}, got another in record {int(np.flatnonzero(~holds)[0])}" for holds, text in rules if not holds.all()]


def _states(records: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """States of records, ``float64[n, 13]``."""
    pose, states = records["pose"], np.zeros((len(records), STATE_SIZE))
    states[:, :3], states[:, 3:6] = pose["position_m"], pose["velocity_mps"]
    states[:, 6:10], states[:, 10:] = pose["orientation"], pose["rates_radps"]
    return states
