"""The LightWare SF45/B's commands, carried by the frames of ``lightware``: what each holds, and what may be written.

The commands below are answered; any other, a write to what can only be read, and data of another size are not. A write is answered with the value that then holds: the one
written, or the one before where the written one is none the sensor knows. ArduPilot counts distances only while those answers are what it asked for.

=======  ======================  ==========  =====  ==============================================================================================
command  name                    data        write  meaning
=======  ======================  ==========  =====  ==============================================================================================
0        product name            16 bytes           ``SF45``, zero padded
1        hardware version        uint32
2        firmware version        4 bytes            patch, minor, major, 0
3        serial number           16 bytes           zero padded
9        user data               16 bytes    yes
27       distance output         uint32      yes    which of the fields of command 44 are sent, a bit each
30       stream                  uint32      yes    0 nothing, 5 command 44 at the update rate
44       distance data in cm     int16 each         first return raw, filtered, strength (%); last return the same three; background noise;
                                                    temperature (0.01 degC); yaw (0.01 deg, positive clockwise). Nothing seen: -100
50       laser firing            uint8       yes    0: nothing is seen
57       temperature             int32              0.01 degC
66       update rate             uint8       yes    see ``Sf45Spec.update_rates``
74, 76   noise, lost signals     uint32             0 here
75       zero offset             int32       yes
79       baud rate               uint8       yes    0 to 7; holds after a restart, so nothing follows from it here
85       scan speed              uint16      yes    5 (fastest) to 2000
93       stepper status          uint8              1
94       scan on start-up        uint8       yes
96       scan enable             uint8       yes    0: points at the scan position; then 1: goes on from where it was stopped
97       scan position           float32     yes    degrees
98       scan low angle          float32     yes    -170 to -5
99       scan high angle         float32     yes    5 to 170
=======  ======================  ==========  =====  ==============================================================================================

Sources: PX4 ``lightware_sf45_serial/sf45_commands.h`` and ``lightware_sf45_serial.cpp`` (numbers; the product name must make a frame of 22 bytes, distances frames of 10; bins grow
clockwise with yaw); ArduPilot ``AP_Proximity_LightWareSF45B.cpp`` and ``.h`` (numbers, handshake, sign of yaw) and ``SIM_PS_LightWare_SF45B.cpp`` (answers carry the write bit;
-1 m for nothing); LightWare's ``lightwarelidar`` ROS driver (types, limits, update rates) and SF000 guide rev 5 page 37 (bits of command 27, by which the SF45's drivers ask, too).
Which widths commands 74 to 76 and 93 have was seen nowhere.
"""

from typing import NamedTuple

PRODUCT_NAME, HARDWARE_VERSION, FIRMWARE_VERSION, SERIAL_NUMBER, USER_DATA = 0, 1, 2, 3, 9
DISTANCE_OUTPUT, STREAM, DISTANCE_DATA_CM, LASER_FIRING, TEMPERATURE, UPDATE_RATE = 27, 30, 44, 50, 57, 66
NOISE, ZERO_OFFSET, LOST_SIGNALS, BAUD_RATE, SCAN_SPEED = 74, 75, 76, 79, 85
STEPPER_STATUS, SCAN_ON_START, SCAN_ENABLE, SCAN_POSITION, SCAN_LOW_ANGLE, SCAN_HIGH_ANGLE = 93, 94, 96, 97, 98, 99

STREAM_DISTANCES = 5
NOTHING_CM = -100
FIRST_RAW, FIRST_FILTERED, FIRST_STRENGTH, LAST_RAW, LAST_FILTERED, LAST_STRENGTH, BACKGROUND, CHIP_TEMPERATURE, YAW = range(9)


class Parameter(NamedTuple):
    """A command that holds a number.

    Attributes:
        dtype: Type of its data.
        low: Least value that may be written.
        high: Largest value that may be written; below ``low`` where nothing may.
    """

    dtype: str
    low: float
    high: float


_READ_ONLY = (1.0, 0.0)
PARAMETERS = {
    HARDWARE_VERSION: Parameter("<u4", *_READ_ONLY),
    DISTANCE_OUTPUT: Parameter("<u4", 1, 0x1FF),
    STREAM: Parameter("<u4", 0, STREAM_DISTANCES),
    LASER_FIRING: Parameter("<u1", 0, 1),
    TEMPERATURE: Parameter("<i4", *_READ_ONLY),
    UPDATE_RATE: Parameter("<u1", 1, 12),
    NOISE: Parameter("<u4", *_READ_ONLY),
    ZERO_OFFSET: Parameter("<i4", -(2**31), 2**31 - 1),
    LOST_SIGNALS: Parameter("<u4", *_READ_ONLY),
    BAUD_RATE: Parameter("<u1", 0, 7),
    SCAN_SPEED: Parameter("<u2", 5, 2000),
    STEPPER_STATUS: Parameter("<u1", *_READ_ONLY),
    SCAN_ON_START: Parameter("<u1", 0, 1),
    SCAN_ENABLE: Parameter("<u1", 0, 1),
    SCAN_POSITION: Parameter("<f4", -170, 170),
    SCAN_LOW_ANGLE: Parameter("<f4", -170, -5),
    SCAN_HIGH_ANGLE: Parameter("<f4", 5, 170),
}
