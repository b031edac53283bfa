"""Obstacle messages of MAVLink from a lidar's scan: 72 sectors around the vehicle, or the distance along one beam.

OBSTACLE_DISTANCE (330): sector k is centred at 5 k degrees clockwise from forward (``angle_offset`` 0) and 5 degrees wide; its distance is horizontal, in centimetres:

======================  ==========================================================================================================================
distance                meaning
======================  ==========================================================================================================================
min_cm .. max_cm        nearest return of the sector inside the height band
max_cm + 1              free: rays point into the sector, and none of them has such a return
65535                   unknown: no ray points into the sector
======================  ==========================================================================================================================

The difference between the last two matters: PX4 does not fly into unknown sectors (``CP_GO_NO_DATA``), but into free ones. ArduPilot ignores both.
Rays with a hit nearer than ``min_cm`` (the vehicle's own rotors) are ignored; a farther hit whose horizontal distance is shorter is reported as ``min_cm``.

Sources: PX4 ``msg/ObstacleDistance.msg`` (0, max + 1, 65535); ArduPilot ``AP_Proximity_MAV.cpp`` (sector j at j * increment, clockwise; orientation n at n * 45 degrees
clockwise, although ``common.xml`` calls ROTATION_YAW_90 left-facing); frame 12 is MAV_FRAME_BODY_FRD, without which PX4 assumes that the ring is aligned with north.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.parts.vehicle.scan_messages import DistanceSensorSpec, ObstacleSpec, Orientation
from hilsim.protocols.mavlink.codec import write_frame
from hilsim.protocols.mavlink.frames import LARGEST_FRAME
from hilsim.protocols.mavlink.messages import DISTANCE_SENSOR, OBSTACLE_DISTANCE, Message, Origin, build_draft
from hilsim.streaming.obstacle_map import Band, Cone, ObstacleMap, build_obstacle_map
from hilsim.streaming.obstacle_sectors import SECTOR_DEG
from hilsim.world.geometry.frames import Vector

UNKNOWN_CM = 65535
MAV_FRAME_BODY_FRD = 12
MAV_DISTANCE_SENSOR_LASER = 0
UNKNOWN_COVARIANCE = 255

ORIENTATION_CODES: dict[Orientation, int] = {
    "forward": 0,
    "forward_right": 1,
    "right": 2,
    "backward_right": 3,
    "backward": 4,
    "backward_left": 5,
    "left": 6,
    "forward_left": 7,
    "up": 24,
    "down": 25,
}
"""MAV_SENSOR_ORIENTATION as ArduPilot and PX4 interpret it."""
MAV_COMP_ID_OBSTACLE_AVOIDANCE = 196
"""Sending component, different from HIL_SENSOR's, whose sequence numbers the flight loop counts."""


class ObstacleValues(NamedTuple):
    """Fields of OBSTACLE_DISTANCE except the time.

    Attributes:
        distances: ``uint16[72]``, distances in cm.
        min_distance: Minimum distance in cm.
        max_distance: Maximum distance in cm.
        increment: Width of a sector in degrees.
        increment_f: Width of a sector in degrees; takes precedence if it is not 0.
        angle_offset: Angle of sector 0 in degrees.
        frame: MAV_FRAME of the sectors.
        sensor_type: MAV_DISTANCE_SENSOR of the sensor.
    """

    distances: npt.NDArray[np.uint16]
    min_distance: int
    max_distance: int
    increment: int = SECTOR_DEG
    increment_f: float = float(SECTOR_DEG)
    angle_offset: float = 0.0
    frame: int = MAV_FRAME_BODY_FRD
    sensor_type: int = MAV_DISTANCE_SENSOR_LASER


class DistanceValues(NamedTuple):
    """Fields of DISTANCE_SENSOR except the time.

    Attributes:
        min_distance: Minimum distance in cm.
        max_distance: Maximum distance in cm.
        current_distance: Distance in cm; ``max_distance`` + 1 for free.
        orientation: MAV_SENSOR_ORIENTATION of the sensor.
        horizontal_fov: Horizontal field of view in radians.
        vertical_fov: Vertical field of view in radians.
        id: Number of the sensor.
        type: MAV_DISTANCE_SENSOR of the sensor.
        covariance: Variance in cm^2; 255 if unknown.
        signal_quality: Signal quality; 0 if unknown.
    """

    min_distance: int
    max_distance: int
    current_distance: int
    orientation: int
    horizontal_fov: float
    vertical_fov: float
    id: int
    type: int = MAV_DISTANCE_SENSOR_LASER
    covariance: int = UNKNOWN_COVARIANCE
    signal_quality: int = 0


def orientation_axis(orientation: Orientation) -> Vector:
    """Unit vector of an orientation in the body frame (x forward, y left, z up)."""
    if orientation in {"up", "down"}:
        return 0.0, 0.0, 1.0 if orientation == "up" else -1.0
    clockwise_rad = math.radians(45.0 * ORIENTATION_CODES[orientation])
    return math.cos(clockwise_rad), -math.sin(clockwise_rad), 0.0


def map_for_messages(obstacle: ObstacleSpec | None, distances: Sequence[DistanceSensorSpec], *, turn_ns: int) -> ObstacleMap:
    """Obstacle map for the messages required of one lidar.

    Args:
        obstacle: Specification of the sectors; None for none.
        distances: Specifications of the cones.
        turn_ns: Duration of the lidar's turn or scan.
    """
    band = Band(obstacle.range_min_m, obstacle.range_max_m, obstacle.low_m, obstacle.high_m) if obstacle else None
    cones = [Cone(orientation_axis(spec.orientation), math.radians(spec.width_deg), spec.range_min_m, spec.range_max_m) for spec in distances]
    return build_obstacle_map(band, cones, turn_ns=turn_ns)


def _centimetres(distance_m: npt.NDArray[np.float64], min_cm: int, max_cm: int) -> npt.NDArray[np.uint16]:
    known = np.clip(np.rint(np.where(np.isfinite(distance_m), distance_m, 0.0) * 100.0), min_cm, max_cm)
    return np.where(np.isnan(distance_m), UNKNOWN_CM, np.where(np.isinf(distance_m), max_cm + 1, known)).astype(np.uint16)


def obstacles_of_sectors(spec: ObstacleSpec, nearest_m: npt.NDArray[np.float64]) -> ObstacleValues:
    """OBSTACLE_DISTANCE of ``float64[72]`` level distances, as ``note_return`` writes them."""
    return ObstacleValues(_centimetres(nearest_m, spec.min_cm, spec.max_cm), spec.min_cm, spec.max_cm)


def distance_of_beam(spec: DistanceSensorSpec, nearest_m: float) -> DistanceValues | None:
    """DISTANCE_SENSOR of the nearest range in a beam (``inf``: nothing is near); None where no ray is in it (``nan``): the message cannot express that, so none is sent."""
    if math.isnan(nearest_m):
        return None
    width_rad = math.radians(spec.width_deg)
    return DistanceValues(
        min_distance=spec.min_cm,
        max_distance=spec.max_cm,
        current_distance=int(_centimetres(np.array([nearest_m]), spec.min_cm, spec.max_cm)[0]),
        orientation=ORIENTATION_CODES[spec.orientation],
        horizontal_fov=width_rad,
        vertical_fov=width_rad,
        id=spec.sensor_id,
    )


def obstacle_frame(values: ObstacleValues, time_ns: int, sender: Origin) -> npt.NDArray[np.uint8]:
    """OBSTACLE_DISTANCE as a frame ``uint8[n]`` at a rig time."""
    return _frame(OBSTACLE_DISTANCE, {"time_usec": max(time_ns, 0) // 1000} | values._asdict(), sender)


def distance_frame(values: DistanceValues, time_ns: int, sender: Origin) -> npt.NDArray[np.uint8]:
    """DISTANCE_SENSOR as a frame ``uint8[n]`` at a rig time."""
    return _frame(DISTANCE_SENSOR, {"time_boot_ms": max(time_ns, 0) // 1_000_000} | values._asdict(), sender)


def _frame(message: Message, fields: Mapping[str, object], sender: Origin) -> npt.NDArray[np.uint8]:
    message_draft = build_draft(message)
    for name, value in fields.items():
        message_draft.record[name] = value
    frame = np.empty(LARGEST_FRAME, np.uint8)
    return frame[: write_frame(message, message_draft.payload, sender, frame)]
