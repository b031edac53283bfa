"""OBSTACLE_DISTANCE and DISTANCE_SENSOR as frames."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from hilsim.autopilot.obstacle_sectors import DistanceValues, ObstacleValues
from hilsim.protocols.mavlink.codec import write_frame
from hilsim.protocols.mavlink.frames import LARGEST_FRAME
from hilsim.protocols.mavlink.messages import DISTANCE_SENSOR, OBSTACLE_DISTANCE, Message, Origin, build_draft

MAV_COMP_ID_OBSTACLE_AVOIDANCE = 196
"""Sending component, different from HIL_SENSOR's, whose sequence numbers the flight loop counts."""


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
