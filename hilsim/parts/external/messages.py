"""Datagrams in which another simulator moves the platform and objects: version 1, little-endian.

A datagram is a header of 32 bytes and records of 96 bytes:

======  ====  ==========================================================================================
offset  size  header
======  ====  ==========================================================================================
0       4     magic, ``HSXP``
4       1     version, 1
5       1     kind: 1 poses, 2 objects, 3 remove, 4 step, 5 done, 6 bye
6       2     number of records; 0 for step, done and bye
8       4     sender: a number that the sender chooses when it starts
12      4     sequence: number of the datagram, one more each time
16      4     flags, 0
20      4     reserved, 0
24      8     time, ns on the sender's clock; for step the end of the released stretch
======  ====  ==========================================================================================

======  ====  ==========================================================================================
offset  size  record of poses
======  ====  ==========================================================================================
0       4     id; 0 is the platform
4       4     flags: bit 0 the velocity is given, bit 1 the rates are given, bit 2 it is not seen from here on
8       24    position x, y, z, float64, m in the world
32      32    orientation w, x, y, z, float64, world from body
64      12    velocity x, y, z, float32, m/s in the world
76      12    rates x, y, z, float32, rad/s in the body
88      8     reserved, 0
======  ====  ==========================================================================================

======  ====  ==========================================================================================
offset  size  record of objects, and of remove (of which only the id counts)
======  ====  ==========================================================================================
0       4     id, at least 1
4       1     shape: 1 box, 2 cylinder, 3 sphere, 4 model
5       1     label, class for ground truth
6       1     reflectivity, code
7       1     reserved, 0
8       12    size x, y, z, float32, m: the extents of the shape about its middle
20      32    name, UTF-8, ended by zeros
52      32    model: name of an object of the rig whose mesh it has, UTF-8, ended by zeros
84      12    reserved, 0
======  ====  ==========================================================================================

The world is ENU, bodies are FLU (``world.geometry.frames``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.errors import PacketError
from hilsim.limits import COORDINATE_M

MAGIC = int.from_bytes(b"HSXP", "little")
VERSION = 1
HEADER_SIZE, RECORD_SIZE = 32, 96
MAX_RECORDS = 682
"""A UDP datagram has at most 65,507 bytes."""
DATAGRAM_SIZE = HEADER_SIZE + MAX_RECORDS * RECORD_SIZE
PLATFORM_ID = 0
HAS_VELOCITY, HAS_RATES, IS_HIDDEN = 1, 2, 4
UNIT_TOLERANCE = 1e-3
"""Largest difference of a quaternion's length from 1; it is normalised."""

HEADER_DTYPE = np.dtype(
    [
        ("magic", "<u4"),
        ("version", "u1"),
        ("kind", "u1"),
        ("count", "<u2"),
        ("sender", "<u4"),
        ("sequence", "<u4"),
        ("flags", "<u4"),
        ("reserved", "<u4"),
        ("time_ns", "<i8"),
    ]
)
POSE_DTYPE = np.dtype(
    [
        ("id", "<u4"),
        ("flags", "<u4"),
        ("position_m", "<f8", (3,)),
        ("orientation", "<f8", (4,)),
        ("velocity_mps", "<f4", (3,)),
        ("rates_radps", "<f4", (3,)),
        ("reserved", "u1", (8,)),
    ]
)
OBJECT_DTYPE = np.dtype(
    [
        ("id", "<u4"),
        ("shape", "u1"),
        ("label", "u1"),
        ("reflectivity", "u1"),
        ("reserved", "u1"),
        ("size_m", "<f4", (3,)),
        ("name", "S32"),
        ("model", "S32"),
        ("spare", "u1", (12,)),
    ]
)
if (HEADER_DTYPE.itemsize, POSE_DTYPE.itemsize, OBJECT_DTYPE.itemsize) != (HEADER_SIZE, RECORD_SIZE, RECORD_SIZE):
    raise AssertionError("messages must have headers of 32 bytes and records of 96")


class MessageKind(IntEnum):
    """Kinds of messages."""

    POSES = 1
    OBJECTS = 2
    REMOVE = 3
    STEP = 4
    DONE = 5
    BYE = 6


class Shape(IntEnum):
    """Shapes of objects."""

    BOX = 1
    CYLINDER = 2
    SPHERE = 3
    MODEL = 4


class Fault(IntEnum):
    """Faults of a datagram, in the order in which they are looked for; 0 is none. Those up to ``TIME`` concern the whole datagram."""

    NONE = 0
    SHORT = 1
    MAGIC = 2
    VERSION = 3
    KIND = 4
    COUNT = 5
    LENGTH = 6
    TIME = 7
    NOT_FINITE = 8
    TOO_FAR = 9
    NOT_UNIT = 10


FAULT_RULES = {
    Fault.SHORT: "size must be at least 32 bytes",
    Fault.MAGIC: 'magic must be "HSXP"',
    Fault.VERSION: f"version must be {VERSION}",
    Fault.KIND: "kind must be 1 to 6",
    Fault.COUNT: f"count must be 1 to {MAX_RECORDS} for poses, objects and remove, and 0 for step, done and bye",
    Fault.LENGTH: "size must be 32 bytes and 96 for each record",
    Fault.TIME: f"time_ns must be 0 to {1 << 62}",
    Fault.NOT_FINITE: "position, orientation, and velocity and rates where they are given, must be finite",
    Fault.TOO_FAR: f"position must be at most {COORDINATE_M.text} from the origin on each axis",
    Fault.NOT_UNIT: f"orientation must be a unit quaternion (w, x, y, z) within {UNIT_TOLERANCE}",
}
_MAX_TIME_NS = 1 << 62
_MAX_M = float(COORDINATE_M.bound)
_KINDS = len(MessageKind)
_REMOVE = int(MessageKind.REMOVE)
_SHORT, _MAGIC, _VERSION, _KIND, _COUNT, _LENGTH, _TIME = (
    int(fault) for fault in (Fault.SHORT, Fault.MAGIC, Fault.VERSION, Fault.KIND, Fault.COUNT, Fault.LENGTH, Fault.TIME)
)
_NOT_FINITE, _TOO_FAR, _NOT_UNIT = int(Fault.NOT_FINITE), int(Fault.TOO_FAR), int(Fault.NOT_UNIT)


@dataclass(frozen=True, kw_only=True, eq=False)
class Message:
    """A datagram from or to another simulator.

    Attributes:
        kind: Kind of the message.
        sender: Number that the sender chose when it started.
        sequence: Number of the datagram.
        time_ns: Time on the sender's clock.
        poses: Records of ``POSE_DTYPE``; empty for other kinds.
        objects: Records of ``OBJECT_DTYPE``; empty for other kinds than objects and remove.
    """

    kind: MessageKind
    sender: int = 0
    sequence: int = 0
    time_ns: int = 0
    poses: npt.NDArray[Any]
    objects: npt.NDArray[Any]


@kernel
def header_fault(header: npt.NDArray[Any], size: int) -> int:  # noqa: PLR0911 - a return a fault
    """Fault of a datagram's header (``Fault``), 0 for none.

    Args:
        header: Array of one ``HEADER_DTYPE``, the datagram's first bytes.
        size: Size of the datagram in bytes.
    """
    if size < HEADER_SIZE:
        return _SHORT
    head = header[0]
    if head["magic"] != MAGIC:
        return _MAGIC
    if head["version"] != VERSION:
        return _VERSION
    kind, count = np.int64(head["kind"]), np.int64(head["count"])
    if kind < 1 or kind > _KINDS:
        return _KIND
    if (kind <= _REMOVE) != (count > 0) or count > MAX_RECORDS:
        return _COUNT
    if size != HEADER_SIZE + count * RECORD_SIZE:
        return _LENGTH
    if head["time_ns"] < 0 or head["time_ns"] > _MAX_TIME_NS:
        return _TIME
    return 0


@kernel
def read_pose(poses: npt.NDArray[Any], row: int, state: npt.NDArray[np.float64]) -> int:
    """Check a record of poses and copy it to a state; returns its fault (``Fault``), 0 for none.

    Args:
        poses: Array of ``POSE_DTYPE``.
        row: The record.
        state: ``float64[13]``, output as in ``world.platforms.live``: position, velocity, orientation of unit length, rates. What is not given is zeros.
    """
    pose = poses[row]
    flags = np.int64(pose["flags"])
    for axis in range(3):
        state[axis] = pose["position_m"][axis]
        state[3 + axis] = pose["velocity_mps"][axis] if flags & HAS_VELOCITY else 0.0
        state[10 + axis] = pose["rates_radps"][axis] if flags & HAS_RATES else 0.0
    squares = 0.0
    for part in range(4):
        state[6 + part] = pose["orientation"][part]
        squares += state[6 + part] * state[6 + part]
    for column in range(state.shape[0]):
        if not np.isfinite(state[column]):
            return _NOT_FINITE
    for axis in range(3):
        if abs(state[axis]) > _MAX_M:
            return _TOO_FAR
    length = np.sqrt(squares)
    if not abs(length - 1.0) <= UNIT_TOLERANCE:
        return _NOT_UNIT
    for part in range(4):
        state[6 + part] /= length
    return 0


def message_views(buffer: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Header and records of poses as views of a buffer ``uint8[DATAGRAM_SIZE]``, for kernels."""
    return buffer[:HEADER_SIZE].view(HEADER_DTYPE), buffer[HEADER_SIZE:DATAGRAM_SIZE].view(POSE_DTYPE)


def poses_of(ids: Sequence[int], position_m: npt.ArrayLike, orientation: npt.ArrayLike) -> npt.NDArray[Any]:
    """Records of poses without velocities.

    Args:
        ids: Id of each body.
        position_m: ``float64[n, 3]`` in the world.
        orientation: ``float64[n, 4]``, unit quaternions, world from body.
    """
    poses = np.zeros(len(ids), POSE_DTYPE)
    poses["id"], poses["position_m"], poses["orientation"] = ids, position_m, orientation
    return poses


def encode(kind: MessageKind, records: npt.NDArray[Any] | None = None, *, time_ns: int, sender: int = 0, sequence: int = 0) -> bytes:
    """Bytes of a message; ``records`` are of ``POSE_DTYPE`` or ``OBJECT_DTYPE``.

    Raises:
        PacketError: the message would have faults; the text names each.
    """
    header = np.zeros(1, HEADER_DTYPE)
    count = 0 if records is None else len(records)
    header[0] = (MAGIC, VERSION, kind, min(count, 65_535), sender & 0xFFFFFFFF, sequence & 0xFFFFFFFF, 0, 0, time_ns)
    payload = header.tobytes() + (b"" if records is None else np.ascontiguousarray(records).tobytes())
    decode(payload)
    return payload


def decode(payload: bytes) -> Message:
    """Read a datagram.

    Raises:
        PacketError: it has faults; the text names each.
    """
    header = np.frombuffer(payload[:HEADER_SIZE].ljust(HEADER_SIZE, b"\0"), HEADER_DTYPE)
    if found := header_fault(header, len(payload)):
        raise PacketError(f"message of poses: {FAULT_RULES[Fault(found)]}, got {_got(Fault(found), header[0], len(payload))}")
    head = header[0]
    kind = MessageKind(int(head["kind"]))
    body = payload[HEADER_SIZE:]
    poses = np.frombuffer(body if kind is MessageKind.POSES else b"", POSE_DTYPE)
    objects = np.frombuffer(body if kind in {MessageKind.OBJECTS, MessageKind.REMOVE} else b"", OBJECT_DTYPE)
    faults = _pose_faults(poses) + _object_faults(objects, is_declared=kind is MessageKind.OBJECTS)
    if faults:
        raise PacketError(f"message of {kind.name.lower()}: {'; '.join(faults)}")
    return Message(kind=kind, sender=int(head["sender"]), sequence=int(head["sequence"]), time_ns=int(head["time_ns"]), poses=poses, objects=objects)


def _got(fault: Fault, head: Any, size: int) -> str:
    match fault:
        case Fault.MAGIC:
            return f"0x{int(head['magic']):08x} at byte 0"
        case Fault.VERSION:
            return f"{head['version']} at byte 4"
        case Fault.KIND:
            return f"{head['kind']} at byte 5"
        case Fault.COUNT:
            return f"{head['count']} of kind {head['kind']} at byte 6"
        case Fault.TIME:
            return f"{head['time_ns']} at byte 24"
        case _:
            return f"{size} bytes"


def _pose_faults(poses: npt.NDArray[Any]) -> list[str]:
    """Each fault of records of poses; a record names its first one."""
    state = np.zeros(13)
    found = [(row, Fault(read_pose(poses, row, state))) for row in range(len(poses))]
    faults = [f"{FAULT_RULES[fault]}, got {_shown(fault, poses[row])} in record {row}" for row, fault in found if fault]
    return faults + _repeated(poses["id"])


def _shown(fault: Fault, pose: Any) -> str:
    if fault is Fault.NOT_UNIT:
        with np.errstate(over="ignore", invalid="ignore"):
            return f"length {np.linalg.norm(pose['orientation']):.6g}"
    return str(pose["position_m"].tolist())


def _repeated(ids: npt.NDArray[Any]) -> list[str]:
    values, counts = np.unique(ids, return_counts=True)
    return [f"id must be of one record, got {value} in {count}" for value, count in zip(values, counts, strict=True) if count > 1]


def _object_faults(objects: npt.NDArray[Any], *, is_declared: bool) -> list[str]:
    """Each fault of records of objects; of records that remove objects only ids are looked at."""
    faults = []
    for row, thing in enumerate(objects):
        rules = [(int(thing["id"]) > PLATFORM_ID, "id must be at least 1, got 0")]
        if is_declared:
            rules += _declaration_rules(thing)
        faults += [f"{message} in record {row}" for holds, message in rules if not holds]
    return faults + _repeated(objects["id"])


def _declaration_rules(thing: Any) -> list[tuple[bool, str]]:
    shape, size_m = int(thing["shape"]), [float(extent) for extent in thing["size_m"]]
    is_model = shape == Shape.MODEL
    has_size = all(np.isfinite(extent) and extent > 0.0 for extent in size_m)
    rules = [
        (shape in set(Shape), f"shape must be 1 to {len(Shape)}, got {shape}"),
        (is_model or has_size, f"size_m must be above 0, got {size_m}"),
        (is_model == bool(thing["model"]), f"model must be given for shape {int(Shape.MODEL)} and only for it, got {bytes(thing['model'])!r}"),
        (shape != Shape.SPHERE or len(set(size_m)) == 1, f"size_m of a sphere must be its diameter three times, got {size_m}"),
        (shape != Shape.CYLINDER or size_m[0] == size_m[1], f"size_m of a cylinder must begin with its diameter twice, got {size_m}"),
    ]
    return rules + [(_is_text(thing[name]), f"{name} must be UTF-8, got {bytes(thing[name])!r}") for name in ("name", "model")]


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
