"""The Velodyne position packet: 512 bytes of UDP payload on port 8308, little-endian.

======  ====  ==============================================================================================
offset  size  field
======  ====  ==============================================================================================
0       187   zero (VLP-16); of an HDL-32E 14..37 hold three modules of a gyroscope and two accelerometers each, see below
187     11    board temperatures and calibration state, firmware since 2018; zero before
198     4     timestamp, us past the hour, when the packet was assembled
202     1     PPS state: 0 absent, 1 synchronizing, 2 locked, 3 error
203     3     thermal status, temperatures at shut-down and power-up, firmware since 2018; zero before
206     128   NMEA sentence, CR LF, zero padded
334     178   zero
======  ====  ==============================================================================================

A module is four words of 16 bits: gyroscope, temperature, accelerometers X and Y. The high four bits select one of them (0 to 3), the low twelve
hold the value in two's complement. How the modules lie, in the sensor's frame:

======  ==============  ==================  ==================
module  gyroscope       accelerometer X     accelerometer Y
======  ==============  ==================  ==================
1       -left           up                  forward
2       forward         up                  left
3       up              -forward            left
======  ==============  ==================  ==================

A public capture of a vehicle at rest shows that the first two accelerometers X read +1 g, and that Y of the last two share an axis. The rest is as one
public driver reads it; another one has some senses the other way round.

Source: VLP-16 User Manual 63-9243 rev D page 60; VLS-128 manual 63-9483 page 58 for 187..197 and 203..205; the rest measured on captures;
the HDL-32E's words and their units as in Wireshark's dissector and public drivers.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.errors import PacketError

POSITION_PACKET_SIZE = 512
POSITION_PORT = 8308
NMEA_OFFSET = 206
NMEA_SIZE = 128
PPS_WORDS = {0: "absent", 1: "synchronizing", 2: "locked", 3: "error"}
IMU_OFFSET = 14
IMU_MODULES = 3
GYRO_UNIT_DPS = 0.09766
TEMPERATURE_UNIT_C, TEMPERATURE_ZERO_C = 0.1453, 25.0
ACCELERATION_UNIT_G = 0.001221

POSITION_PACKET_DTYPE = np.dtype(
    [
        ("reserved_0", "u1", (187,)),
        ("temperature_top", "u1"),
        ("temperature_bottom", "u1"),
        ("adc_calibration_temperature", "u1"),
        ("adc_calibration_change", "<i2"),
        ("adc_calibration_age", "<u4"),
        ("adc_calibration_reason", "u1"),
        ("adc_calibration_bits", "u1"),
        ("timestamp", "<u4"),
        ("pps", "u1"),
        ("thermal_status", "u1"),
        ("shutdown_temperature", "u1"),
        ("power_up_temperature", "u1"),
        ("nmea", "u1", (NMEA_SIZE,)),
        ("reserved_1", "u1", (178,)),
    ]
)
IMU_MODULE_DTYPE = np.dtype([("gyro", "<u2"), ("temperature", "<u2"), ("accel_x", "<u2"), ("accel_y", "<u2")])
IMU_SIZE = IMU_MODULES * IMU_MODULE_DTYPE.itemsize
THERMAL_OFFSET = int(POSITION_PACKET_DTYPE.fields["thermal_status"][1])  # type: ignore[index] # it has fields
_GYRO, _TEMPERATURE, _ACCEL_X, _ACCEL_Y = (constant(tag) for tag in range(4))
_WORD_MAX = 2047
if POSITION_PACKET_DTYPE.itemsize != POSITION_PACKET_SIZE:
    raise AssertionError("the position packet's layout does not have the manual's size")


@kernel
def encode_position_packet(stamp_us: int, pps_state: int, nmea: npt.NDArray[np.uint8], nmea_size: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write one position packet as 2014-2016 VLP-16 firmware sends it (no temperatures).

    Args:
        stamp_us: Microseconds past the hour at assembly.
        pps_state: A ``PpsState``.
        nmea: ``uint8[>= nmea_size]``, the sentence with CR LF.
        nmea_size: Bytes of the sentence, 0 when there is no receiver, at most 128.
        payload: ``uint8[>= 512]``, written.
    """
    payload[:POSITION_PACKET_SIZE] = 0
    for byte in range(4):
        payload[198 + byte] = (stamp_us >> (8 * byte)) & 0xFF
    payload[202] = pps_state
    for place in range(nmea_size):  # a loop: Numba compiles half a second at each copy of a slice to a slice
        payload[NMEA_OFFSET + place] = nmea[place]


@kernel
def _write_word(tag: int, value: float, at: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write one word: ``value`` counts, rounded and held within 12 bits."""
    count = min(max(math.floor(value + 0.5), -_WORD_MAX), _WORD_MAX)
    payload[at] = count & 0xFF
    payload[at + 1] = (count >> 8) & 0x0F | tag << 4


@kernel
def encode_imu_module(module: int, gyro_dps: float, temperature_c: float, accel_x_g: float, accel_y_g: float, payload: npt.NDArray[np.uint8]) -> None:
    """Write the words of one module of an IMU.

    Args:
        module: 0..2.
        gyro_dps: Reading of its gyroscope, clipped at 200.
        temperature_c: Its temperature.
        accel_x_g: Reading of its accelerometer X, in units of standard gravity, clipped at 2.5.
        accel_y_g: Likewise Y.
        payload: ``uint8[>= 38]``, eight bytes of it written.
    """
    at = IMU_OFFSET + 8 * module
    _write_word(_GYRO, gyro_dps / GYRO_UNIT_DPS, at, payload)
    _write_word(_TEMPERATURE, (temperature_c - TEMPERATURE_ZERO_C) / TEMPERATURE_UNIT_C, at + 2, payload)
    _write_word(_ACCEL_X, accel_x_g / ACCELERATION_UNIT_G, at + 4, payload)
    _write_word(_ACCEL_Y, accel_y_g / ACCELERATION_UNIT_G, at + 6, payload)


def decode_imu(payloads: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """``float64[n, 3, 4]``: of each module the gyroscope in deg/s, the temperature in degrees Celsius, accelerometers X and Y in g.

    Args:
        payloads: ``uint8[n, 512]``.

    Raises:
        PacketError: a word's high four bits are not its index; the message names packet and byte.
    """
    words = np.ascontiguousarray(payloads[:, IMU_OFFSET : IMU_OFFSET + IMU_SIZE]).view("<u2").astype(np.int64).reshape(-1, IMU_MODULES, 4)
    wrong = np.argwhere(words >> 12 != np.arange(4))
    if wrong.size:
        packet, module, word = wrong[0].tolist()
        at = IMU_OFFSET + 8 * module + 2 * word
        raise PacketError(f"position packet {packet} must have an IMU word of kind {word} at byte {at}, got 0x{words[packet, module, word]:04x}")
    counts = (words & 0xFFF ^ 0x800) - 0x800
    units = np.array([GYRO_UNIT_DPS, TEMPERATURE_UNIT_C, ACCELERATION_UNIT_G, ACCELERATION_UNIT_G])
    return np.asarray(counts * units + np.array([0.0, TEMPERATURE_ZERO_C, 0.0, 0.0]))


def decode_position_packets(payloads: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """View payloads as records of ``POSITION_PACKET_DTYPE``.

    Args:
        payloads: ``uint8[n, 512]``.

    Raises:
        PacketError: a payload has another size.
    """
    if payloads.ndim != 2 or payloads.shape[1] != POSITION_PACKET_SIZE:
        raise PacketError(f"Velodyne position packets must be {POSITION_PACKET_SIZE} bytes each, got an array of shape {payloads.shape}")
    return np.ascontiguousarray(payloads).view(POSITION_PACKET_DTYPE)[:, 0]
