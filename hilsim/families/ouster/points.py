"""Points of Ouster's lidar packets, in the sensor frame of ``hilsim.world.geometry.frames`` (x right, y forward, z up).

Ouster's own sensor frame has x forward and y left: its coordinates are ``(y, -x, z)`` of these, as the coordinates of ROS drivers.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.setting import LidarSetting
from hilsim.emulator.truth import Truth
from hilsim.errors import require
from hilsim.families.ouster.family import OusterFamily
from hilsim.families.ouster.protocol.geometry import MM_PER_M, column_angles_rad, points_m
from hilsim.families.ouster.protocol.headers import LIDAR_PACKET, VALID_STATUS
from hilsim.families.ouster.protocol.lidar import LidarLayout, LidarPackets, decode_lidar_packets, lidar_layout
from hilsim.families.ouster.protocol.metadata import SensorMetadata
from hilsim.families.ouster.protocol.profiles import HeaderKind
from hilsim.families.ouster.setting import OusterSetting
from hilsim.families.ouster.specs import OusterSpec
from hilsim.read.analysis.decode import POINT_DTYPE
from hilsim.sensor.setup import SensorSetup

OUSTER_POINT_DTYPE = np.dtype([*POINT_DTYPE.descr, ("signal", "<u2"), ("near_ir", "<u2"), ("column", "<u2")])
"""A point: the fields of ``POINT_DTYPE``, and what an Ouster sensor measures beside them.

=================  ====================================================================================================================
range              metres, as sent: from the beam's origin, and the distance of that origin from the axis
time_ns            the column's stamp
ring               beam, counted from the lowest elevation
intensity          reflectivity: to 100 percent of a diffuse surface, more for retro-reflectors
return_number      0 for the first, 1 for the second return of the sensor's ``return_order``
flags              flags of the pixel
signal             photons; 0 in profiles without
near_ir            photons of ambient light; 0 in profiles without
column             measurement id
=================  ====================================================================================================================
"""
_NEAR_MM, _FAR_MM = 1_000_000, 2_000_000
_PACKETS_AT_ONCE = 16
_DECODERS = 16
"""Sensors and settings whose directions are stored: those of 128 beams take 3 MB each."""


class OusterDecoder:
    """Decoder of one sensor's lidar packets, with its directions by column and beam."""

    def __init__(self, sensor: SensorMetadata) -> None:
        """Compute the directions.

        Args:
            sensor: Metadata of the sensor.
        """
        self.sensor = sensor
        self.layout: LidarLayout = lidar_layout(sensor.profile, sensor.beams.channels, sensor.footer)
        angle = column_angles_rad(np.arange(sensor.columns_per_frame), sensor.columns_per_frame)
        shape = sensor.columns_per_frame, sensor.beams.channels
        near_m, far_m = (points_m(np.full(shape, range_mm), angle, sensor.beams) for range_mm in (_NEAR_MM, _FAR_MM))
        self._per_mm = (far_m - near_m) / (_FAR_MM - _NEAR_MM)
        self._at_zero_m = near_m - self._per_mm * _NEAR_MM
        self._ring = np.argsort(np.argsort(np.array(sensor.beams.elevation_deg), kind="stable"))
        turn_rad = np.arctan2(sensor.beams.lidar_to_sensor[4], sensor.beams.lidar_to_sensor[0])
        beam_deg = np.array(sensor.beams.azimuth_deg) - np.degrees(turn_rad)
        self._azimuth_deg = (beam_deg - np.degrees(angle)[:, np.newaxis]) % 360.0

    def packets(self, payloads: npt.NDArray[np.uint8]) -> LidarPackets:
        """Fields of lidar packets ``uint8[n, size]``, whatever their footers are.

        Raises:
            PacketError: a packet is of another type.
        """
        return decode_lidar_packets(payloads, self.sensor.profile, self.layout, checks_footer=False)

    def is_lidar(self, payloads: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """Whether packets ``uint8[n, size]`` have the type of lidar packets, ``bool[n]``; without packet header all have."""
        header = self.sensor.profile.header
        if header is HeaderKind.NONE:
            return np.ones(len(payloads), np.bool_)
        return np.asarray((payloads[:, 0] == LIDAR_PACKET) & ((header is HeaderKind.FUSA) | (payloads[:, 1] == 0)))

    def points(self, payloads: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Points of lidar packets in the order of columns and beams, the returns of a pixel together.

        Pixels without a return, and columns that are not valid or beyond the turn, give none; packets of another type neither.

        Args:
            payloads: ``uint8[n, size]``.

        Returns:
            ``OUSTER_POINT_DTYPE[m]``.

        Raises:
            ValueError: the packets have another size than the sensor's.
        """
        size = self.layout.size
        is_fit = payloads.ndim == 2 and payloads.shape[1] == size
        require((is_fit, f"lidar packets of {self.sensor.prod_line} must be {size} bytes each, got {payloads.shape}"))
        parts = [np.empty(0, OUSTER_POINT_DTYPE)]
        for first in range(0, len(payloads), _PACKETS_AT_ONCE):
            some = payloads[first : first + _PACKETS_AT_ONCE]
            rows = np.flatnonzero(self.is_lidar(some))
            if rows.size:
                parts.append(self._points(some[rows], first + rows))
        return np.concatenate(parts)

    def _points(self, payloads: npt.NDArray[np.uint8], number: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        packets = self.packets(payloads)
        pixels, columns = packets.pixels, packets.columns
        is_valid = (columns["status"] & VALID_STATUS != 0) & (columns["measurement_id"] < self.sensor.columns_per_frame)
        is_return = (pixels.range_mm > 0) & is_valid[:, np.newaxis, :, np.newaxis]
        packet, column, beam, number_of = np.nonzero(is_return.transpose(0, 2, 3, 1))
        at = packet, number_of, column, beam
        measured = columns["measurement_id"][packet, column].astype(np.int64)
        range_mm = pixels.range_mm[at].astype(np.float64)
        place = self._per_mm[measured, beam] * range_mm[:, np.newaxis] + self._at_zero_m[measured, beam]
        points = np.empty(packet.size, OUSTER_POINT_DTYPE)
        points["x"], points["y"], points["z"] = -place[:, 1], place[:, 0], place[:, 2]
        points["range"] = range_mm / MM_PER_M
        points["azimuth"] = self._azimuth_deg[measured, beam]
        points["packet"] = number[packet]
        points["time_ns"] = columns["timestamp_ns"][packet, column].astype(np.int64)
        points["ring"] = self._ring[beam]
        points["intensity"] = pixels.reflectivity[at]
        points["return_number"] = number_of
        points["flags"] = pixels.flags[at]
        points["signal"] = pixels.signal[at]
        points["near_ir"] = pixels.near_ir[packet, 0, column, beam]
        points["column"] = measured
        return points


def stacked_payloads(payloads: Sequence[bytes]) -> npt.NDArray[np.uint8]:
    """Join payloads of one size to ``uint8[n, size]``."""
    return np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1)


def decode_emulated(payloads: npt.NDArray[np.uint8], setting: LidarSetting) -> npt.NDArray[Any]:
    """Decode the lidar packets ``uint8[n, size]`` of one emulated sensor, as ``OusterDecoder`` does."""
    decoder = emulated_decoder(setting)
    return decoder.points(np.ascontiguousarray(payloads[:, : decoder.layout.size]))


def points_with_rows(
    lidar: LidarEmulator, first: int, payloads: npt.NDArray[np.uint8], truth: Truth
) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Decoded points of rendered packets from ``first`` on, and the row of ground truth of each: both are in the order of columns, beams and returns.

    Packets may have other forms after a change.
    """
    found = [decode_emulated(payloads[:0], lidar.setting)]
    begin = 0
    while begin < len(payloads):
        present, stop = lidar.at_packet(first + begin), begin + 1
        while stop < len(payloads) and lidar.at_packet(first + stop) is present:
            stop += 1
        found.append(decode_emulated(payloads[begin:stop], present.setting))
        begin = stop
    decoded = np.concatenate(found)
    if decoded.size != truth.packet.size:
        raise AssertionError(f"each of {decoded.size} points must have a row of ground truth, got {truth.packet.size} rows")
    return decoded, np.arange(decoded.size)


def emulated_decoder(setting: LidarSetting) -> OusterDecoder:
    """Decoder of the packets of one emulated sensor."""
    return _decoder(cast("OusterSpec", setting.spec), setting.setup.ouster or OusterSetting())


@lru_cache(_DECODERS)
def _decoder(spec: OusterSpec, setting: OusterSetting) -> OusterDecoder:
    family = OusterFamily(spec, SensorSetup(ouster=setting))
    return OusterDecoder(family.metadata(0, destination="", data_port=None, position_port=None))
