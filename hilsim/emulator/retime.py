"""Recorded packets made to name the present: the fields that hold a time are rewritten in place, every other byte stays as it was recorded."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.families.cepton.protocol.info import INFO_PACKET_SIZE, SYNC_OFFSET, write_sync_offset
from hilsim.families.cepton.protocol.stdv import STAMP_OFFSET as _STDV_STAMP_OFFSET
from hilsim.families.ouster.protocol.retiming import retime_imu, retime_lidar
from hilsim.families.velodyne.protocol.position import NMEA_OFFSET, NMEA_SIZE
from hilsim.protocols.nmea_retiming import retime_sentence
from hilsim.units import HOUR_US, NS_PER_S

_DATA_STAMP, _POSITION_STAMP, _STDV_STAMP = constant(1200), constant(198), constant(_STDV_STAMP_OFFSET)
_WIDTH_4, _WIDTH_8 = constant(4), constant(8)
_SENTENCE, _SENTENCE_END = constant(NMEA_OFFSET), constant(NMEA_OFFSET + NMEA_SIZE)


class Retiming(IntEnum):
    """Fields that are rewritten in a flow's payloads."""

    NOTHING = 0
    VELODYNE_DATA = 1
    """Time stamp, us past the hour."""
    VELODYNE_POSITION = 2
    """Time stamp; the NMEA sentence's time, date and checksum."""
    CEPTON_STDV = 3
    """Reference time stamp, us."""
    CEPTON_INFO = 4
    """Offset to add to a point's time for UTC, if the sensor sends it (it is not 0)."""
    OUSTER_LIDAR = 5
    """Stamps of the columns, ns, and the CRC where there is one."""
    OUSTER_IMU = 6
    """Times of the measurements or of both readings, ns, and the CRC where there is one."""


class StampClock(NamedTuple):
    """Time of the rewritten stamps.

    Attributes:
        shown_ns: Offset from rig time to the time that stamps show: UTC, or the device clock that the rig's sensors share.
        utc_ns: Offset from rig time to UTC, which NMEA sentences always show.
    """

    shown_ns: int
    utc_ns: int


@kernel
def _put_little(value: int, width: int, payload: npt.NDArray[np.uint8], at: int) -> None:
    for byte in range(width):
        payload[at + byte] = (value >> (8 * byte)) & 0xFF


@kernel
def retime(retiming: int, clock: StampClock, stamp_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Rewrite one payload in place.

    Args:
        retiming: A ``Retiming``.
        clock: Clock of the stamps.
        stamp_ns: Rig time of the instant the packet's stamp names (its first firing, its assembly).
        payload: ``uint8[>= packet]`` (Ouster: ``uint8[packet]``, whose size gives the form), written.
    """
    if retiming == Retiming.OUSTER_LIDAR:
        retime_lidar(payload, clock.shown_ns + stamp_ns)
        return
    if retiming == Retiming.OUSTER_IMU:
        retime_imu(payload, clock.shown_ns + stamp_ns)
        return
    shown_us = (clock.shown_ns + stamp_ns) // 1000
    if retiming == Retiming.VELODYNE_DATA:
        _put_little(shown_us % HOUR_US, _WIDTH_4, payload, _DATA_STAMP)
    elif retiming == Retiming.VELODYNE_POSITION:
        _put_little(shown_us % HOUR_US, _WIDTH_4, payload, _POSITION_STAMP)
        retime_sentence(payload, _SENTENCE, _SENTENCE_END, (clock.utc_ns + stamp_ns) // NS_PER_S)
    elif retiming == Retiming.CEPTON_STDV:
        _put_little(shown_us, _WIDTH_8, payload, _STDV_STAMP)
    elif retiming == Retiming.CEPTON_INFO and payload.size >= INFO_PACKET_SIZE and payload[SYNC_OFFSET : SYNC_OFFSET + 8].any():
        write_sync_offset((clock.utc_ns - clock.shown_ns) // 1000, payload)
