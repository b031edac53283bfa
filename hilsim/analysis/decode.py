"""Decode packets to points, like a driver of the lidar.

Points are in the sensor frame of ``hilsim.geometry.frames`` (x right, y forward, z up). ROS drivers have x forward, y left: ``(y, -x, z)`` of these.
No clock is read: times are the sensor's own stamps.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays, read_only
from hilsim.compilation.jit import constant, kernel, signed
from hilsim.errors import require
from hilsim.families.cepton.protocol.stdv import POINT_UNIT_M, PointFlag, point_at, points_of, stamp_us_at
from hilsim.families.velodyne.protocol.data import BLOCKS, DATA_PACKET_SIZE, RECORDS_PER_BLOCK, RETURNS_BY_MODE_BYTE
from hilsim.families.velodyne.protocol.firing import (
    RecordFirings,
    block_azimuth_cdeg,
    build_record_firings,
    data_stamp_us,
    fired_cdeg,
    first_step_cdeg,
    packet_step_cdeg,
    step_between,
)
from hilsim.families.velodyne.protocol.geometry import FiringGeometry
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.geometry.frames import sensor_direction
from hilsim.sensor.specs import LidarSpec
from hilsim.units import CDEG_PER_RAD, RAD_PER_CDEG, TURN_CDEG

POINT_DTYPE = np.dtype(
    [
        ("x", "<f4"),
        ("y", "<f4"),
        ("z", "<f4"),
        ("range", "<f4"),
        ("azimuth", "<f4"),
        ("packet", "<u4"),
        ("time_ns", "<i8"),
        ("ring", "<u2"),
        ("intensity", "u1"),
        ("return_number", "u1"),
        ("flags", "u1"),
    ]
)
"""A point.

=================  ====================================================================================================================
x, y, z            metres, in the sensor frame: right, forward, up; z with the height of the laser's origin, as far as it is known (VLP-16)
range              metres, from the laser's origin, as sent
azimuth            degrees, 0 to 360, of the firing: clockwise from forward, seen from above
packet             index of the decoded packet, from 0
time_ns            nanoseconds, the sensor's stamp of the firing. Velodyne: past the hour in which the packet began, so that the last firings of an
                   hour may exceed it. Cepton: as its header counts
ring               laser. Velodyne: counted from the lowest elevation, 0; Cepton: the packet's channel
intensity          byte of the packet: 0 to 100 percent for diffuse surfaces (Cepton: to 127), more for retro-reflectors
return_number      index in the return mode's order: 0 in modes of one return; in dual modes 0 for the last, 1 for the strongest or second strongest. A
                   return in both blocks of a dual packet is given once, as 0. Cepton: 1 for a second return
flags              Cepton's ``PointFlag``; 0 for Velodyne
=================  ====================================================================================================================
"""
_PACKET_SIZE, _RECORDS, _BLOCKS = constant(DATA_PACKET_SIZE), constant(RECORDS_PER_BLOCK), constant(BLOCKS)
_MOST_RETURNS = BLOCKS * RECORDS_PER_BLOCK
_NO_RETURN, _SECOND_RETURN = constant(PointFlag.NO_RETURN), constant(PointFlag.SECOND_RETURN)
_UNIT_M = POINT_UNIT_M


class PointPlan(NamedTuple):
    """Kernel-side description of a Velodyne model; build with ``build_point_plan``.

    Attributes:
        firings: Directions and times of the firings of a group's records.
        ring: ``int64[r]``, laser of each record, counted from the lowest.
        height_m: ``float64[r]``, height of each laser's origin above the sensor's; 0 if unknown.
    """

    firings: RecordFirings
    ring: npt.NDArray[np.int64]
    height_m: npt.NDArray[np.float64]


def build_point_plan(geometry: FiringGeometry) -> PointPlan:
    """Build the plan of a model."""
    firings, lasers = build_record_firings(geometry), len(geometry.elevation_deg)
    record = np.arange(firings.share.size) % lasers
    height_mm = np.array(geometry.vertical_offset_mm or (0.0,) * lasers)
    return PointPlan(firings, np.argsort(geometry.elevation_order)[record], height_mm[record] * 1e-3)


def decode_velodyne(batch: DatagramArrays, geometry: FiringGeometry, chosen: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[Any]:
    """Decode the points of Velodyne data packets, in the order of their records.

    Each packet is decoded by itself, except a VLS-128's in dual mode, which contains one firing sequence: the head's turn within it comes from
    neighbouring packets.

    Args:
        batch: Datagrams, as ``capture.batches`` yields them.
        geometry: Geometry of the sensor's model.
        chosen: ``bool[n]``, selection of the sensor's data packets, 1206 bytes each; None: all.

    Returns:
        Points ``POINT_DTYPE[n]``; a firing without a return gives none.

    Raises:
        ValueError: a chosen datagram has another size.
    """
    start = batch.start if chosen is None else batch.start[chosen]
    size = batch.size if chosen is None else batch.size[chosen]
    require((bool((size == DATA_PACKET_SIZE).all()), f"Velodyne data packets must be {DATA_PACKET_SIZE} bytes each, got others among them"))
    points = np.empty(start.size * _MOST_RETURNS, dtype=POINT_DTYPE)
    return points[: decode_data_packets_into(build_point_plan(geometry), read_only(batch.data), start, points)]


def decode_cepton(batch: DatagramArrays, chosen: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[Any]:
    """Decode the points of Cepton STDV packets, in their order.

    Args:
        batch: Datagrams, as ``capture.batches`` yields them.
        chosen: ``bool[n]``, selection of the sensor's STDV packets; None: all.

    Returns:
        Points ``POINT_DTYPE[n]``, without empty points and incomplete packets.
    """
    start = batch.start if chosen is None else batch.start[chosen]
    size = batch.size if chosen is None else batch.size[chosen]
    data = read_only(batch.data)
    points = np.empty(count_stdv_points(data, start, size), dtype=POINT_DTYPE)
    return points[: decode_stdv_packets_into(data, start, size, points)]


def decode_packets(payloads: npt.NDArray[np.uint8], spec: LidarSpec) -> npt.NDArray[Any]:
    """Decode the data packets ``uint8[n, size]`` of one sensor of a known model, as ``decode_velodyne`` and ``decode_cepton`` do."""
    count, size = payloads.shape
    none = np.zeros(count, np.int64)
    batch = DatagramArrays(payloads.reshape(-1), np.arange(count, dtype=np.int64) * size, np.full(count, size, np.int64), none, none)
    return decode_velodyne(batch, spec.geometry) if isinstance(spec, VelodyneSpec) else decode_cepton(batch)


@kernel
def _step_between(firings: RecordFirings, data: npt.NDArray[np.uint8], earlier: int, later: int) -> float:
    """``step_between`` of two packets at these bytes."""
    first, second = data[earlier : earlier + _PACKET_SIZE], data[later : later + _PACKET_SIZE]
    return step_between(firings, block_azimuth_cdeg(first, 0), data_stamp_us(first), block_azimuth_cdeg(second, 0), data_stamp_us(second))


@kernel
def _packet_step(firings: RecordFirings, data: npt.NDArray[np.uint8], start: npt.NDArray[np.int64], packet: int, group_blocks: int) -> float:
    """Azimuth step at the beginning of a packet: its own first step, else that of the former or next packet, else 0."""
    step = float(first_step_cdeg(data[start[packet] : start[packet] + _PACKET_SIZE], group_blocks))
    if step < 0.0 and packet > 0:
        step = _step_between(firings, data, start[packet - 1], start[packet])
    if step < 0.0 and packet + 1 < start.size:
        step = _step_between(firings, data, start[packet], start[packet + 1])
    return max(step, 0.0)


@kernel
def decode_data_packets_into(plan: PointPlan, data: npt.NDArray[np.uint8], start: npt.NDArray[np.int64], points: npt.NDArray[Any]) -> int:
    """Write the returns of data packets to ``points``; returns their number.

    Args:
        plan: Plan of the model.
        data: ``uint8[bytes]`` with the packets.
        start: ``int64[n]``, offset of each packet of 1206 bytes.
        points: ``POINT_DTYPE[>= 384 n]``, output.
    """
    firings = plan.firings
    count = 0
    for packet in range(start.size):
        payload = data[start[packet] : start[packet] + _PACKET_SIZE]
        returns = RETURNS_BY_MODE_BYTE[payload[1204]]
        group_blocks = firings.blocks * returns
        step_cdeg = _packet_step(firings, data, start, packet, group_blocks)
        group_ns = 1000 * data_stamp_us(payload)
        for first in range(0, _BLOCKS - group_blocks + 1, group_blocks):
            read_step_cdeg = packet_step_cdeg(payload, first, group_blocks)
            step_cdeg = float(read_step_cdeg) if read_step_cdeg >= 0 else step_cdeg
            for block in range(first, first + group_blocks):
                count = _decode_block(plan, payload, block, block - first, returns, step_cdeg, packet, group_ns, points, count)
            group_ns += firings.group_ns
    return count


@kernel
def _decode_block(
    plan: PointPlan,
    payload: npt.NDArray[np.uint8],
    block: int,
    place: int,
    returns: int,
    step_cdeg: float,
    packet: int,
    group_ns: int,
    points: npt.NDArray[Any],
    count: int,
) -> int:
    """Append the returns of a block, the ``place``-th of its group, to ``count`` points; returns the new number of points."""
    firings = plan.firings
    azimuth_cdeg = float(block_azimuth_cdeg(payload, block))
    return_number = place % returns
    for number in range(_RECORDS):
        at = 100 * block + 4 + 3 * number
        raw = signed(payload[at]) | signed(payload[at + 1]) << 8
        is_copy = (
            return_number == 1 and payload[at] == payload[at - 100] and payload[at + 1] == payload[at - 99] and payload[at + 2] == payload[at - 98]
        )
        if raw == 0 or is_copy:  # both blocks contain a single return
            continue
        record = place // returns * _RECORDS + number
        fired = fired_cdeg(azimuth_cdeg, step_cdeg, firings.share[record], firings.offset_cdeg[record]) % TURN_CDEG
        range_m = raw * firings.unit_mm * 1e-3
        x, y, z = sensor_direction(fired * RAD_PER_CDEG, firings.elevation_rad[record])
        point = points[count]
        point["x"], point["y"], point["z"] = range_m * x, range_m * y, range_m * z + plan.height_m[record]
        point["range"], point["azimuth"] = range_m, fired * 0.01
        point["packet"], point["time_ns"] = packet, group_ns + firings.time_ns[record]
        point["ring"], point["intensity"] = plan.ring[record], payload[at + 2]
        point["return_number"], point["flags"] = return_number, 0
        count += 1
    return count


@kernel
def count_stdv_points(data: npt.NDArray[np.uint8], start: npt.NDArray[np.int64], size: npt.NDArray[np.int64]) -> int:
    """Count the points of STDV packets, including those without a return; arguments as for ``decode_stdv_packets_into``."""
    count = 0
    for packet in range(start.size):
        count += points_of(data, start[packet], size[packet])[2]
    return count


@kernel
def decode_stdv_packets_into(data: npt.NDArray[np.uint8], start: npt.NDArray[np.int64], size: npt.NDArray[np.int64], points: npt.NDArray[Any]) -> int:
    """Write the returns of STDV packets to ``points``; returns their number.

    Args:
        data: ``uint8[bytes]`` with the packets.
        start: ``int64[n]``, offset of each packet.
        size: ``int64[n]``, bytes of each packet.
        points: ``POINT_DTYPE[>= count_stdv_points(...)]``, output.
    """
    count = 0
    for packet in range(start.size):
        at, point_size, held = points_of(data, start[packet], size[packet])
        time_ns = 1000 * stamp_us_at(data, start[packet]) if held > 0 else 0
        for _ in range(held):
            x, y, z, reflectivity, step_us, channel, flags = point_at(data, at)
            at += point_size
            time_ns += 1000 * step_us
            if flags & _NO_RETURN:
                continue
            point = points[count]
            point["x"], point["y"], point["z"] = x * _UNIT_M, y * _UNIT_M, z * _UNIT_M
            point["range"] = _UNIT_M * math.sqrt(float(x * x + y * y + z * z))
            point["azimuth"] = math.atan2(float(x), float(y)) * CDEG_PER_RAD % TURN_CDEG * 0.01
            point["packet"], point["time_ns"] = packet, time_ns
            point["ring"], point["intensity"] = channel, reflectivity
            point["return_number"], point["flags"] = 1 if flags & _SECOND_RETURN else 0, flags
            count += 1
    return count
