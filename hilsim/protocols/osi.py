"""ASAM OSI messages (``osi3``) as far as a lidar needs them: ground truth in, a lidar's reflections out.

Field numbers and meanings are those of Open Simulation Interface 3.x (``osi_groundtruth.proto``, ``osi_sensorview.proto``, ``osi_object.proto``,
``osi_common.proto``). Fields that are not listed here are passed over.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import Any, Literal, NamedTuple

from hilsim.errors import PacketError
from hilsim.limits import STAMP_NS
from hilsim.protocols.protobuf import Field, Kind, double, message, read_message, varint

NO_OBJECT = 2**64 - 1
"""``object_id`` of a reflection without an object (``osi_sensorview.proto``)."""
NS_PER_S = 1_000_000_000
LIGHT_MPS = 299_792_458.0


class MovingType(IntEnum):
    """``MovingObject.Type``."""

    UNKNOWN = 0
    OTHER = 1
    VEHICLE = 2
    PEDESTRIAN = 3
    ANIMAL = 4


class StationaryType(IntEnum):
    """Values of ``StationaryObject.Classification.Type`` that hilsim distinguishes: plants, and objects of unknown type."""

    UNKNOWN = 0
    OTHER = 1
    TREE = 7
    VEGETATION = 9


def _message(name: str, of: Mapping[int, Field], *, is_repeated: bool = False) -> Field:
    return Field(name, Kind.MESSAGE, of, is_repeated)


_VECTOR = {1: Field("x"), 2: Field("y"), 3: Field("z")}
_ANGLES = {1: Field("roll"), 2: Field("pitch"), 3: Field("yaw")}
_SIZE = {1: Field("length"), 2: Field("width"), 3: Field("height")}
_ID = {1: Field("value", Kind.WHOLE)}
_TIME = {1: Field("seconds", Kind.WHOLE), 2: Field("nanos", Kind.WHOLE)}
_PLACED = {1: _message("dimension", _SIZE), 2: _message("position", _VECTOR), 3: _message("orientation", _ANGLES)}
_BASE_MOVING = {**_PLACED, 4: _message("velocity", _VECTOR), 6: _message("orientation_rate", _ANGLES)}
_STATIONARY = {
    1: _message("id", _ID),
    2: _message("base", _PLACED),
    3: _message("classification", {1: Field("type", Kind.WHOLE)}),
}
_MOVING = {
    1: _message("id", _ID),
    2: _message("base", _BASE_MOVING),
    3: Field("type", Kind.WHOLE),
    5: _message("vehicle_attributes", {4: _message("bbcenter_to_rear", _VECTOR)}),
}
_SUPPLEMENT = {1: _message("base", _PLACED)}
_SIGN = {1: _message("id", _ID), 2: _message("main_sign", _SUPPLEMENT), 3: _message("supplementary_sign", _SUPPLEMENT, is_repeated=True)}
_LIGHT = {1: _message("id", _ID), 2: _message("base", _PLACED)}
_GROUND_TRUTH = {
    2: _message("timestamp", _TIME),
    3: _message("host_vehicle_id", _ID),
    4: _message("stationary_object", _STATIONARY, is_repeated=True),
    5: _message("moving_object", _MOVING, is_repeated=True),
    6: _message("traffic_sign", _SIGN, is_repeated=True),
    7: _message("traffic_light", _LIGHT, is_repeated=True),
}
_MOUNTING = {1: _message("position", _VECTOR), 2: _message("orientation", _ANGLES)}
_SENSOR_VIEW = {
    2: _message("timestamp", _TIME),
    4: _message("mounting_position", _MOUNTING),
    7: _message("global_ground_truth", _GROUND_TRUTH),
    8: _message("host_vehicle_id", _ID),
}
_REFLECTION = {
    1: Field("signal_strength"),
    2: Field("time_of_flight"),
    6: _message("object_id", _ID),
}
_LIDAR_VIEW = {
    2: _message("timestamp", _TIME),
    1002: _message("lidar_sensor_view", {2: _message("reflection", _REFLECTION, is_repeated=True)}, is_repeated=True),
}

MessageType = Literal["GroundTruth", "SensorView"]
Vector = tuple[float, float, float]


class OsiList(StrEnum):
    """List of a ground truth that an object is in."""

    STATIONARY = "stationary_object"
    MOVING = "moving_object"
    SIGN = "traffic_sign"
    LIGHT = "traffic_light"


class OsiObject(NamedTuple):
    """A stationary or moving object, a plate of a traffic sign, or a bulb of a traffic light.

    Attributes:
        path: Path of the object in the message.
        id: ``id.value``; None: not given.
        type: ``type`` of a moving object, ``classification.type`` of a stationary one.
        list: List that it is in.
        size_m: Length, width and height; None: not given.
        position_m: Centre of the bounding box; None: not given.
        angles_rad: Roll, pitch and yaw.
        velocity_mps: Velocity in the world; None: not given.
        angle_rates_radps: Time derivatives of roll, pitch and yaw; None: not given.
        rear_m: From the centre of the box to the middle of the rear axle; None: not given.
    """

    path: str
    id: int | None
    type: int
    list: OsiList
    size_m: Vector | None
    position_m: Vector | None
    angles_rad: Vector
    velocity_mps: Vector | None
    angle_rates_radps: Vector | None
    rear_m: Vector | None

    @property
    def is_moving(self) -> bool:
        """Whether it is in the list of moving objects."""
        return self.list is OsiList.MOVING


class OsiMounting(NamedTuple):
    """Mounting of a sensor in its vehicle's frame (origin in the middle of the rear axle).

    Attributes:
        position_m: Position.
        angles_rad: Roll, pitch and yaw.
    """

    position_m: Vector
    angles_rad: Vector


class OsiWorld(NamedTuple):
    """A ground truth.

    Attributes:
        time_ns: ``timestamp``.
        host_id: ``host_vehicle_id``; None: not given.
        objects: Objects in the order of the message, stationary ones first.
        mounting: ``SensorView.mounting_position``; None: not given.
        notes: Sentences on what is not as the standard has it.
    """

    time_ns: int
    host_id: int | None
    objects: tuple[OsiObject, ...]
    mounting: OsiMounting | None
    notes: tuple[str, ...] = ()


class Reflection(NamedTuple):
    """A reflection of a lidar's light.

    Attributes:
        strength_db: Relative signal level.
        flight_s: Time of flight.
        object_id: Number of the object; None: no object.
    """

    strength_db: float
    flight_s: float
    object_id: int | None


def decode_world(content: bytes, kind: MessageType, where: str = "OSI message") -> OsiWorld:
    """Read the objects of a ``GroundTruth``, or of a ``SensorView``'s ``global_ground_truth``.

    Args:
        content: Bytes of the message.
        kind: Type of the message.
        where: Start of error messages: the stream and the number of the message.

    Raises:
        PacketError: it is no such message; the text names the field by its path.
    """
    try:
        read = read_message(content, _GROUND_TRUTH if kind == "GroundTruth" else _SENSOR_VIEW)
    except ValueError as error:
        raise PacketError(f"{where}: {kind}{error}") from error
    truth, prefix = (read, kind) if kind == "GroundTruth" else (read.get("global_ground_truth"), f"{kind}.global_ground_truth")
    if truth is None:
        raise PacketError(f"{where}: {prefix} must be given, got a message without it")
    stamp = truth.get("timestamp", read.get("timestamp"))
    if stamp is None:
        raise PacketError(f"{where}: {prefix}.timestamp must be given, got a message without it")
    host = _id(read.get("host_vehicle_id", {})) if "host_vehicle_id" in read else _id(truth.get("host_vehicle_id", {}))
    mounted = read.get("mounting_position")
    nanos = int(stamp.get("nanos", 0))
    odd = (
        f"{where}: {prefix}.timestamp.nanos: must be below 1,000,000,000, got {nanos:,}: taken as {nanos / NS_PER_S:g} s" if nanos >= NS_PER_S else ""
    )
    return OsiWorld(
        time_ns=_stamp(stamp, f"{where}: {prefix}.timestamp"),
        host_id=host,
        objects=tuple(_objects(truth, prefix)),
        mounting=OsiMounting(_vector(mounted, "position") or (0.0, 0.0, 0.0), _angles(mounted, "orientation") or (0.0, 0.0, 0.0))
        if mounted
        else None,
        notes=(odd,) if odd else (),
    )


def _objects(truth: Mapping[str, Any], prefix: str) -> Iterator[OsiObject]:
    for each in OsiList:
        for row, one in enumerate(truth.get(each, ())):
            part = ".main_sign" if each is OsiList.SIGN else ""
            path = f"{prefix}.{each}[{row}]"
            base = (one.get("main_sign", {}) if part else one).get("base", {})
            size = base.get("dimension")
            yield OsiObject(
                path=path + part,
                id=_id(one.get("id", {})),
                type=one.get("type", 0) if each is OsiList.MOVING else one.get("classification", {}).get("type", 0),
                list=each,
                size_m=(size.get("length", 0.0), size.get("width", 0.0), size.get("height", 0.0)) if size is not None else None,
                position_m=_vector(base, "position"),
                angles_rad=_angles(base, "orientation") or (0.0, 0.0, 0.0),
                velocity_mps=_vector(base, "velocity"),
                angle_rates_radps=_angles(base, "orientation_rate"),
                rear_m=_vector(one.get("vehicle_attributes", {}), "bbcenter_to_rear"),
            )
            for plate, sign in enumerate(one.get("supplementary_sign", ())):
                yield OsiObject(
                    f"{path}.supplementary_sign[{plate}]",
                    None,
                    0,
                    each,
                    None,
                    _vector(sign.get("base", {}), "position"),
                    (0.0, 0.0, 0.0),
                    *(None,) * 3,
                )


def encode_reflections(time_ns: int, reflections: Sequence[Reflection]) -> bytes:
    """Encode a ``SensorView`` with one ``lidar_sensor_view``: the reflections in the order of the firings."""
    rows = b"".join(
        message(
            2,
            double(1, one.strength_db) + double(2, one.flight_s) + message(6, varint(1, NO_OBJECT if one.object_id is None else one.object_id)),
        )
        for one in reflections
    )
    stamp = varint(1, time_ns // NS_PER_S) + varint(2, time_ns % NS_PER_S)
    return message(2, stamp) + message(1002, rows)


def decode_reflections(content: bytes, where: str = "OSI message") -> tuple[int, tuple[Reflection, ...]]:
    """Read a ``SensorView``'s time and the reflections of all its ``lidar_sensor_view``.

    Raises:
        PacketError: it is no such message; the text names the field by its path.
    """
    try:
        read = read_message(content, _LIDAR_VIEW)
    except ValueError as error:
        raise PacketError(f"{where}: SensorView{error}") from error
    stamp = read.get("timestamp", {})
    found = []
    for view in read.get("lidar_sensor_view", ()):
        for one in view.get("reflection", ()):
            number = _id(one.get("object_id", {}))
            found.append(Reflection(one.get("signal_strength", 0.0), one.get("time_of_flight", 0.0), None if number == NO_OBJECT else number))
    return _stamp(stamp, f"{where}: SensorView.timestamp"), tuple(found)


def _stamp(read: Mapping[str, Any], where: str) -> int:
    """Nanoseconds of a ``Timestamp``.

    Raises:
        PacketError: it is out of bounds.
    """
    seconds, nanos = int(read.get("seconds", 0)), int(read.get("nanos", 0))
    if seconds >= 2**63:
        seconds -= 2**64  # an int64 in 64 bits
    if nanos >= 2**32:
        raise PacketError(f"{where}.nanos: must be below 1,000,000,000, got {nanos}")  # some producers reach 1 s; a uint32 cannot be more than this
    STAMP_NS.enforce(abs(seconds) * NS_PER_S, f"{where}.seconds", PacketError)
    return seconds * NS_PER_S + nanos


def _id(read: Mapping[str, Any]) -> int | None:
    value = read.get("value")
    return None if value is None else int(value)


def _vector(read: Mapping[str, Any], name: str) -> Vector | None:
    found = read.get(name)
    return None if found is None else (found.get("x", 0.0), found.get("y", 0.0), found.get("z", 0.0))


def _angles(read: Mapping[str, Any], name: str) -> Vector | None:
    found = read.get(name)
    return None if found is None else (found.get("roll", 0.0), found.get("pitch", 0.0), found.get("yaw", 0.0))
