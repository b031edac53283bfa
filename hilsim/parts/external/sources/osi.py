"""ASAM OSI ground truth as snapshots: boxes for moving and stationary objects, the host vehicle as the platform.

OSI's world is right-handed with z up; an object's frame is at the centre of its bounding box, x forward, y left; roll, pitch and yaw are applied
z-y'-x'' as hilsim's are. A vehicle's own frame has its origin in the middle of the rear axle (``vehicle_attributes.bbcenter_to_rear``), and a
sensor's mounting position is in that frame. ``orientation_rate`` holds the derivatives of the three angles, which are no rotation rates.
"""

import math
from collections.abc import Iterator
from typing import Literal

from hilsim.errors import PacketError
from hilsim.offline.snapshot import Motion, ObjectClass, Snapshot, TrackedObject
from hilsim.protocols.osi import MessageType, MovingType, OsiList, OsiObject, OsiWorld, StationaryType, decode_world
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.poses import Pose

Origin = Literal["mounting", "rear_axle", "center"]
"""Origin of the platform: the sensor's mounting position, the middle of the host's rear axle, or the centre of its box.

Without a mounting position in the message, or without ``bbcenter_to_rear``, that step is left out.
"""
_PLATE_M = 0.002
"""Thickness of a traffic sign's plate that is given without one: usual sheets of aluminium have 2 to 3 mm."""
_MOVING = {MovingType.VEHICLE: ObjectClass.VEHICLE, MovingType.PEDESTRIAN: ObjectClass.PEDESTRIAN, MovingType.ANIMAL: ObjectClass.ANIMAL}
_STATIONARY = {
    StationaryType.UNKNOWN: ObjectClass.OTHER,
    StationaryType.OTHER: ObjectClass.OTHER,
    StationaryType.TREE: ObjectClass.VEGETATION,
    StationaryType.VEGETATION: ObjectClass.VEGETATION,
}


def osi_snapshot(content: bytes, kind: MessageType, *, origin: Origin = "mounting", where: str = "OSI message") -> Snapshot:
    """Read a ``GroundTruth`` or ``SensorView``.

    Args:
        content: Bytes of the message.
        kind: Type of the message.
        origin: Origin of the platform in the host vehicle.
        where: Start of error messages: the stream and the number of the message.

    Raises:
        PacketError: it is no such message, or the host vehicle is not in it; the text names the field by its path.
    """
    world = decode_world(content, kind, where)
    found: list[TrackedObject] = []
    omitted: list[str] = []
    for one in world.objects:
        if one.is_moving and one.id is not None and one.id == world.host_id:
            continue
        try:
            found.append(_tracked(one))
        except ValueError as error:
            omitted.append(f"{where}: {one.path}{error}")
    omitted.extend(_doubles(found, where))
    omitted.extend(world.notes)
    unique = {one.id: one for one in reversed(found)}
    return Snapshot(
        time_ns=world.time_ns,
        platform=_platform(world, origin, where),
        objects=tuple(one for one in found if unique[one.id] is one),
        omitted=tuple(omitted),
    )


def _doubles(found: list[TrackedObject], where: str) -> Iterator[str]:
    """Sentences on objects that have the number of an earlier one."""
    known: set[int] = set()
    for one in found:
        if one.id in known:
            yield f"{where}: id.value of an object must be its own, got {one.id} twice"
        known.add(one.id)


def _platform(world: OsiWorld, origin: Origin, where: str) -> Motion | None:
    if world.host_id is None:
        return None
    hosts = [one for one in world.objects if one.is_moving and one.id == world.host_id]
    if not hosts:
        raise PacketError(f"{where}: host_vehicle_id.value must be the id of a moving object, got {world.host_id}")
    host = hosts[0]
    try:
        motion = _motion(host)
    except ValueError as error:
        raise PacketError(f"{where}: {host.path}{error}") from error
    try:
        if origin != "center" and host.rear_m is not None:
            motion = motion.carrying(Pose(position_m=host.rear_m))
        if origin == "mounting" and world.mounting is not None:
            motion = motion.carrying(Pose(position_m=world.mounting.position_m, orientation=_orientation(world.mounting.angles_rad)))
    except ValueError as error:
        raise PacketError(f"{where}: {host.path} with bbcenter_to_rear and mounting_position: {error}") from error
    return motion


def _tracked(one: OsiObject) -> TrackedObject:
    """The object of a message.

    Raises:
        ValueError: a field is missing or out of bounds; the text begins with its path within the object.
    """
    if one.id is None:
        raise ValueError(".id.value: must be given, got none")
    if one.size_m is None:
        raise ValueError(".base.dimension: must be given, got none")
    motion = _motion(one)
    size_m = one.size_m
    if one.list is OsiList.SIGN and size_m[0] == 0.0:
        size_m = (_PLATE_M, *size_m[1:])  # some producers give a sign's width and height alone
    try:
        return TrackedObject(id=one.id, name=f"osi {one.id}", size_m=size_m, kind=_kind(one), motion=motion, is_still=not one.is_moving)
    except ValueError as error:
        raise ValueError(f".base.dimension: {error}") from error


def _kind(one: OsiObject) -> ObjectClass:
    match one.list:
        case OsiList.MOVING:
            return _MOVING.get(MovingType(one.type), ObjectClass.OTHER) if one.type in set(MovingType) else ObjectClass.OTHER
        case OsiList.STATIONARY:
            return _STATIONARY[StationaryType(one.type)] if one.type in set(StationaryType) else ObjectClass.STRUCTURE
        case OsiList.SIGN:
            return ObjectClass.SIGN
        case OsiList.LIGHT:
            return ObjectClass.LIGHT


def _motion(one: OsiObject) -> Motion:
    if one.position_m is None:
        raise ValueError(".base.position: must be given, got none")
    still = None if one.is_moving else (0.0, 0.0, 0.0)
    try:
        return Motion(
            position_m=one.position_m,
            orientation=_orientation(one.angles_rad),
            velocity_mps=one.velocity_mps if one.is_moving else still,
            rates_radps=body_rates(one.angles_rad, one.angle_rates_radps) if one.angle_rates_radps is not None else still,
        )
    except ValueError as error:
        raise ValueError(f".base: {error}") from error


def _orientation(angles_rad: Vector) -> Quaternion:
    """``world.geometry.rotations.from_roll_pitch_yaw`` of radians; written out, since it is asked for each object of each message."""
    (cr, sr), (cp, sp), (cy, sy) = ((math.cos(0.5 * angle), math.sin(0.5 * angle)) for angle in angles_rad)
    return (
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )


def body_rates(angles_rad: Vector, angle_rates_radps: Vector) -> Vector:
    """Rotation rates in the body's axes from roll, pitch and yaw (z-y'-x'') and their time derivatives."""
    roll, pitch, _ = angles_rad
    roll_rate, pitch_rate, yaw_rate = angle_rates_radps
    return (
        roll_rate - yaw_rate * math.sin(pitch),
        pitch_rate * math.cos(roll) + yaw_rate * math.sin(roll) * math.cos(pitch),
        -pitch_rate * math.sin(roll) + yaw_rate * math.cos(roll) * math.cos(pitch),
    )
