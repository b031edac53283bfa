"""The Velodyne position packet: 512 bytes of UDP payload on port 8308, little-endian.

======  ====  ==============================================================================================
offset  size  field
======  ====  ==============================================================================================
0       187   zero (VLP-16)
187     11    board temperatures and calibration state, firmware since 2018; zero before
198     4     timestamp, us past the hour, when the packet was assembled
202     1     PPS state: 0 absent, 1 synchronizing, 2 locked, 3 error
203     3     thermal status, temperatures at shut-down and power-up, firmware since 2018; zero before
206     128   NMEA sentence, CR LF, zero padded
334     178   zero
======  ====  ==============================================================================================

Source: VLP-16 User Manual 63-9243 rev D page 60; VLS-128 manual 63-9483 page 58 for 187..197 and 203..205; the rest measured on captures.
"""

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim._jit import kernel
from hilsim.errors import PacketError

POSITION_PACKET_SIZE = 512
POSITION_PORT = 8308
NMEA_OFFSET = 206
NMEA_SIZE = 128

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
if POSITION_PACKET_DTYPE.itemsize != POSITION_PACKET_SIZE:
    raise AssertionError("the position packet's layout does not have the manual's size")


class PpsState(IntEnum):
    """How the sensor's clock stands to the pulse per second (VLS-128 manual page 59)."""

    ABSENT = 0
    SYNCHRONIZING = 1
    LOCKED = 2
    ERROR = 3


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
    payload[NMEA_OFFSET : NMEA_OFFSET + nmea_size] = nmea[:nmea_size]


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
