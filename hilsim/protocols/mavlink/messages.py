"""The MAVLink messages of a hardware-in-the-loop link: their layouts on the wire, and drafts of them to fill in or to read.

A structured dtype *is* the layout on the wire: little-endian, packed, fields by falling size as MAVLink orders them, extensions last (each dtype names
from where). Names and units are those of the message set ``common`` (https://mavlink.io/en/messages/common.html); a test compares every layout, size and
extra byte with pymavlink's. What the autopilots make of the fields, and which they need, is in the docstrings; sources: PX4 v1.12
src/modules/mavlink, ArduPilot libraries/AP_RangeFinder and AP_Proximity.

A message is filled in or read through a ``Draft``: a record and the same memory as bytes; ``codec`` makes frames of the bytes.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.protocols.mavlink.crc_extras import CRC_EXTRA

PROTOCOL_VERSION = 3
"""``HEARTBEAT.mavlink_version``; not 0, so that truncation leaves a heartbeat its 9 bytes of payload, by which PX4 knows it on USB."""

HIL_FLAG, ARMED_FLAG = 0x20, 0x80
"""Bits of ``HEARTBEAT.base_mode`` and of ``HIL_ACTUATOR_CONTROLS.mode``."""
HEARTBEAT_PERIOD_NS = 1_000_000_000
"""Time between two heartbeats of a system."""


class Message(NamedTuple):
    """Definition of a message for its frames.

    Attributes:
        id: Message id.
        crc_extra: Its extra byte.
        size: Bytes of payload with all extensions, before trailing zeros are cut off.
    """

    id: int
    crc_extra: int
    size: int


class Draft(NamedTuple):
    """One message, to be filled in or read.

    Attributes:
        record: ``layout[1]``.
        payload: ``uint8[size]``: the same memory.
    """

    record: npt.NDArray[Any]
    payload: npt.NDArray[np.uint8]


class Origin(NamedTuple):
    """Sender of frames.

    Attributes:
        system: Id of the sending system, 1 to 255.
        component: Id of the sending component.
        sequence: ``int64[8]``, column 0: number of the next frame, counted up by each ``write_frame``.
    """

    system: int
    component: int
    sequence: npt.NDArray[np.int64]


HEARTBEAT_DTYPE = np.dtype(
    [
        ("custom_mode", "<u4"),
        ("type", "u1"),
        ("autopilot", "u1"),
        ("base_mode", "u1"),  # bit 7 armed, bit 5 hardware in the loop
        ("system_status", "u1"),
        ("mavlink_version", "u1"),
    ]
)
SYS_STATUS_DTYPE = np.dtype(
    [
        ("onboard_control_sensors_present", "<u4"),
        ("onboard_control_sensors_enabled", "<u4"),
        ("onboard_control_sensors_health", "<u4"),  # bit 2 magnetometer, bit 3 barometer
        ("load", "<u2"),  # 0.1 %
        ("voltage_battery", "<u2"),  # mV
        ("current_battery", "<i2"),  # 10 mA
        ("drop_rate_comm", "<u2"),
        ("errors_comm", "<u2"),
        ("errors_count1", "<u2"),
        ("errors_count2", "<u2"),
        ("errors_count3", "<u2"),
        ("errors_count4", "<u2"),
        ("battery_remaining", "i1"),  # %
        ("onboard_control_sensors_present_extended", "<u4"),  # extensions from here on
        ("onboard_control_sensors_enabled_extended", "<u4"),
        ("onboard_control_sensors_health_extended", "<u4"),
    ]
)
SYSTEM_TIME_DTYPE = np.dtype([("time_unix_usec", "<u8"), ("time_boot_ms", "<u4")])
PARAM_REQUEST_READ_DTYPE = np.dtype([("param_index", "<i2"), ("target_system", "u1"), ("target_component", "u1"), ("param_id", "u1", (16,))])
PARAM_REQUEST_LIST_DTYPE = np.dtype([("target_system", "u1"), ("target_component", "u1")])
PARAM_VALUE_DTYPE = np.dtype(
    [
        ("param_value", "<f4"),  # PX4 puts an integer's four bytes here, ArduPilot its value
        ("param_count", "<u2"),
        ("param_index", "<u2"),
        ("param_id", "u1", (16,)),  # ends with a zero byte unless all 16 are used
        ("param_type", "u1"),
    ]
)
ATTITUDE_DTYPE = np.dtype(
    [
        ("time_boot_ms", "<u4"),
        ("roll", "<f4"),  # rad
        ("pitch", "<f4"),
        ("yaw", "<f4"),
        ("rollspeed", "<f4"),  # rad/s
        ("pitchspeed", "<f4"),
        ("yawspeed", "<f4"),
    ]
)
GLOBAL_POSITION_INT_DTYPE = np.dtype(
    [
        ("time_boot_ms", "<u4"),
        ("lat", "<i4"),  # 1e-7 deg
        ("lon", "<i4"),
        ("alt", "<i4"),  # mm above mean sea level
        ("relative_alt", "<i4"),  # mm above home
        ("vx", "<i2"),  # cm/s north, east, down
        ("vy", "<i2"),
        ("vz", "<i2"),
        ("hdg", "<u2"),  # 0.01 deg, 65535 unknown
    ]
)
ATTITUDE_QUATERNION_DTYPE = np.dtype(
    [
        ("time_boot_ms", "<u4"),
        ("q1", "<f4"),  # w, x, y, z: world NED from body FRD
        ("q2", "<f4"),
        ("q3", "<f4"),
        ("q4", "<f4"),
        ("rollspeed", "<f4"),  # rad/s
        ("pitchspeed", "<f4"),
        ("yawspeed", "<f4"),
        ("repr_offset_q", "<f4", (4,)),  # extension
    ]
)
LOCAL_POSITION_NED_DTYPE = np.dtype(
    [("time_boot_ms", "<u4"), ("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("vx", "<f4"), ("vy", "<f4"), ("vz", "<f4")]  # m and m/s: north, east, down
)
COMMAND_LONG_DTYPE = np.dtype(
    [
        ("param1", "<f4"),
        ("param2", "<f4"),
        ("param3", "<f4"),
        ("param4", "<f4"),
        ("param5", "<f4"),
        ("param6", "<f4"),
        ("param7", "<f4"),
        ("command", "<u2"),
        ("target_system", "u1"),
        ("target_component", "u1"),
        ("confirmation", "u1"),
    ]
)
COMMAND_ACK_DTYPE = np.dtype(
    [
        ("command", "<u2"),
        ("result", "u1"),
        ("progress", "u1"),  # extensions from here on
        ("result_param2", "<i4"),
        ("target_system", "u1"),
        ("target_component", "u1"),
    ]
)
HIL_ACTUATOR_CONTROLS_DTYPE = np.dtype(
    [
        ("time_usec", "<u8"),  # PX4: since boot; in lockstep that of the last HIL_SENSOR
        ("flags", "<u8"),  # PX4 1.12: bit 0 lockstep; newer PX4: which channels are motors
        ("controls", "<f4", (16,)),  # -1 to 1
        ("mode", "u1"),  # bit 7 armed
    ]
)
HIL_SENSOR_DTYPE = np.dtype(
    [
        ("time_usec", "<u8"),  # PX4 stamps samples on arrival, except in lockstep
        ("xacc", "<f4"),  # m/s2, specific force, body FRD: (0, 0, -9.81) at rest
        ("yacc", "<f4"),
        ("zacc", "<f4"),
        ("xgyro", "<f4"),  # rad/s, body FRD
        ("ygyro", "<f4"),
        ("zgyro", "<f4"),
        ("xmag", "<f4"),  # gauss, body FRD
        ("ymag", "<f4"),
        ("zmag", "<f4"),
        ("abs_pressure", "<f4"),  # hPa
        ("diff_pressure", "<f4"),  # hPa
        ("pressure_alt", "<f4"),  # m
        ("temperature", "<f4"),  # degC
        ("fields_updated", "<u4"),  # a bit a field from xacc on; PX4 takes a sensor when all its bits are set
        ("id", "u1"),  # extension
    ]
)
TIMESYNC_DTYPE = np.dtype([("tc1", "<i8"), ("ts1", "<i8")])  # ns; tc1 is 0 in a request
HIL_GPS_DTYPE = np.dtype(
    [
        ("time_usec", "<u8"),  # UTC
        ("lat", "<i4"),  # 1e-7 deg
        ("lon", "<i4"),
        ("alt", "<i4"),  # mm above mean sea level
        ("eph", "<u2"),  # PX4: cm
        ("epv", "<u2"),
        ("vel", "<u2"),  # cm/s over ground
        ("vn", "<i2"),  # cm/s north, east, down
        ("ve", "<i2"),
        ("vd", "<i2"),
        ("cog", "<u2"),  # 0.01 deg, 65535 unknown
        ("fix_type", "u1"),  # 3 in three dimensions
        ("satellites_visible", "u1"),
        ("id", "u1"),  # extensions from here on
        ("yaw", "<u2"),  # 0.01 deg, 36000 north, 0 not available
    ]
)
HIL_STATE_QUATERNION_DTYPE = np.dtype(
    [
        ("time_usec", "<u8"),
        ("attitude_quaternion", "<f4", (4,)),  # w, x, y, z, from body FRD to north, east, down
        ("rollspeed", "<f4"),  # rad/s
        ("pitchspeed", "<f4"),
        ("yawspeed", "<f4"),
        ("lat", "<i4"),  # 1e-7 deg
        ("lon", "<i4"),
        ("alt", "<i4"),  # mm
        ("vx", "<i2"),  # cm/s north, east, down
        ("vy", "<i2"),
        ("vz", "<i2"),
        ("ind_airspeed", "<u2"),  # cm/s
        ("true_airspeed", "<u2"),
        ("xacc", "<i2"),  # mG
        ("yacc", "<i2"),
        ("zacc", "<i2"),
    ]
)
DISTANCE_SENSOR_DTYPE = np.dtype(
    [
        ("time_boot_ms", "<u4"),
        ("min_distance", "<u2"),  # cm
        ("max_distance", "<u2"),
        ("current_distance", "<u2"),
        ("type", "u1"),  # 0 laser
        ("id", "u1"),
        ("orientation", "u1"),  # 0 to 7: clockwise from forward in steps of 45 deg; 24 up, 25 down
        ("covariance", "u1"),  # cm2, 255 unknown
        ("horizontal_fov", "<f4"),  # rad; extensions from here on
        ("vertical_fov", "<f4"),
        ("quaternion", "<f4", (4,)),
        ("signal_quality", "u1"),  # %, 0 unknown
    ]
)
ESTIMATOR_STATUS_DTYPE = np.dtype(
    [
        ("time_usec", "<u8"),
        ("vel_ratio", "<f4"),
        ("pos_horiz_ratio", "<f4"),
        ("pos_vert_ratio", "<f4"),
        ("mag_ratio", "<f4"),
        ("hagl_ratio", "<f4"),
        ("tas_ratio", "<f4"),
        ("pos_horiz_accuracy", "<f4"),  # m
        ("pos_vert_accuracy", "<f4"),
        ("flags", "<u2"),
    ]
)
STATUSTEXT_DTYPE = np.dtype(
    [
        ("severity", "u1"),  # 0 emergency to 7 debug
        ("text", "u1", (50,)),  # ends with a zero byte unless all 50 are used
        ("id", "<u2"),  # extensions from here on: 0 a text alone, else the pieces of a longer one share it
        ("chunk_seq", "u1"),
    ]
)
OBSTACLE_DISTANCE_DTYPE = np.dtype(
    [
        ("time_usec", "<u8"),
        ("distances", "<u2", (72,)),  # cm, clockwise; max_distance + 1 is nothing there, 65535 unknown or unused
        ("min_distance", "<u2"),  # cm
        ("max_distance", "<u2"),
        ("sensor_type", "u1"),  # 0 laser
        ("increment", "u1"),  # deg
        ("increment_f", "<f4"),  # deg, used when not 0; extensions from here on
        ("angle_offset", "<f4"),  # deg
        ("frame", "u1"),  # 0 north is forward, 12 body FRD
    ]
)
ODOMETRY_DTYPE = np.dtype(
    [
        ("time_usec", "<u8"),
        ("x", "<f4"),  # m
        ("y", "<f4"),
        ("z", "<f4"),
        ("q", "<f4", (4,)),  # w, x, y, z: frame_id from child_frame_id
        ("vx", "<f4"),  # m/s in child_frame_id
        ("vy", "<f4"),
        ("vz", "<f4"),
        ("rollspeed", "<f4"),  # rad/s in child_frame_id
        ("pitchspeed", "<f4"),
        ("yawspeed", "<f4"),
        ("pose_covariance", "<f4", (21,)),
        ("velocity_covariance", "<f4", (21,)),
        ("frame_id", "u1"),  # 1 local NED, 20 local FRD, 4 local ENU, 21 local FLU
        ("child_frame_id", "u1"),  # 12 body FRD, or frame_id
        ("reset_counter", "u1"),  # extensions from here on
        ("estimator_type", "u1"),
        ("quality", "i1"),  # %
    ]
)


LAYOUTS: dict[Message, np.dtype[Any]] = {}
"""Layout of each message below."""


def _message(message_id: int, layout: np.dtype[Any]) -> Message:
    message = Message(message_id, CRC_EXTRA[message_id], layout.itemsize)
    LAYOUTS[message] = layout
    return message


HEARTBEAT = _message(0, HEARTBEAT_DTYPE)
SYS_STATUS = _message(1, SYS_STATUS_DTYPE)
SYSTEM_TIME = _message(2, SYSTEM_TIME_DTYPE)
PARAM_REQUEST_READ = _message(20, PARAM_REQUEST_READ_DTYPE)
PARAM_REQUEST_LIST = _message(21, PARAM_REQUEST_LIST_DTYPE)
PARAM_VALUE = _message(22, PARAM_VALUE_DTYPE)
ATTITUDE = _message(30, ATTITUDE_DTYPE)
ATTITUDE_QUATERNION = _message(31, ATTITUDE_QUATERNION_DTYPE)
LOCAL_POSITION_NED = _message(32, LOCAL_POSITION_NED_DTYPE)
GLOBAL_POSITION_INT = _message(33, GLOBAL_POSITION_INT_DTYPE)
COMMAND_LONG = _message(76, COMMAND_LONG_DTYPE)
COMMAND_ACK = _message(77, COMMAND_ACK_DTYPE)
HIL_ACTUATOR_CONTROLS = _message(93, HIL_ACTUATOR_CONTROLS_DTYPE)
HIL_SENSOR = _message(107, HIL_SENSOR_DTYPE)
TIMESYNC = _message(111, TIMESYNC_DTYPE)
HIL_GPS = _message(113, HIL_GPS_DTYPE)
HIL_STATE_QUATERNION = _message(115, HIL_STATE_QUATERNION_DTYPE)
"""Never on a serial port: there PX4 takes it for its own estimate, and its estimator does not start."""
DISTANCE_SENSOR = _message(132, DISTANCE_SENSOR_DTYPE)
ESTIMATOR_STATUS = _message(230, ESTIMATOR_STATUS_DTYPE)
STATUSTEXT = _message(253, STATUSTEXT_DTYPE)
OBSTACLE_DISTANCE = _message(330, OBSTACLE_DISTANCE_DTYPE)
ODOMETRY = _message(331, ODOMETRY_DTYPE)


def build_draft(message: Message) -> Draft:
    """A message with every field 0."""
    record = np.zeros(1, LAYOUTS[message])
    return Draft(record, record.view(np.uint8))


def build_origin(system: int, component: int) -> Origin:
    """A sender whose first frame has number 0."""
    return Origin(system, component, np.zeros(8, np.int64))
