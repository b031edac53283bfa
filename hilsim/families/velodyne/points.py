"""Points of Velodyne data packets, decoded like a driver of the lidar does.

No clock is read: times are the sensor's own stamps.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays, read_only
from hilsim.compilation.jit import constant, kernel, signed
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.setting import LidarSetting
from hilsim.emulator.truth import Truth
from hilsim.errors import CaptureError, require
from hilsim.families.velodyne.protocol.data import BLOCKS, DATA_PACKET_DTYPE, DATA_PACKET_SIZE, RECORDS_PER_BLOCK, RETURNS_BY_MODE_BYTE, ReturnMode
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
from hilsim.families.velodyne.protocol.models import BY_NAME, OTHER_PRODUCTS, identify_model
from hilsim.read.analysis.decode import POINT_DTYPE, batch_of, paired
from hilsim.units import RAD_PER_CDEG, TURN_CDEG
from hilsim.world.geometry.frames import sensor_direction

if TYPE_CHECKING:
    from hilsim.families.velodyne.specs import VelodyneSpec

_PACKET_SIZE, _RECORDS, _BLOCKS = constant(DATA_PACKET_SIZE), constant(RECORDS_PER_BLOCK), constant(BLOCKS)
_MAX_RETURNS = BLOCKS * RECORDS_PER_BLOCK


def geometry_of_packets(packets: npt.NDArray[Any]) -> FiringGeometry:
    """Find the geometry of the model of data packets, by their factory byte and the time between them.

    Args:
        packets: Records of ``DATA_PACKET_DTYPE`` in sending order, at least one.

    Raises:
        CaptureError: the geometry of the model is unknown; the message lists the known models.
    """
    product, mode = int(packets["product"][0]), ReturnMode.find(int(packets["return_mode"][0]))
    steps_us = np.diff(packets["timestamp"].astype(np.int64))
    step_us = float(np.median(steps_us)) if steps_us.size else None
    model = None if product in OTHER_PRODUCTS else identify_model(product, step_us, is_dual=mode is not None and mode.is_dual)
    name = model.name if model else OTHER_PRODUCTS.get(product, "").partition(" (")[0]
    if name not in BY_NAME:
        known = ", ".join(BY_NAME)
        raise CaptureError(
            f"lasers of a {name or 'model'} with product byte 0x{product:02x} must be known (known are {known}); a picture names one with --model"
        )
    return BY_NAME[name].geometry


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
    points = np.empty(start.size * _MAX_RETURNS, dtype=POINT_DTYPE)
    return points[: decode_data_packets_into(build_point_plan(geometry), read_only(batch.data), start, points)]


def decode_emulated(payloads: npt.NDArray[np.uint8], setting: LidarSetting) -> npt.NDArray[Any]:
    """Decode the data packets ``uint8[n, size]`` of one emulated sensor, as ``decode_velodyne`` does."""
    return decode_velodyne(batch_of(payloads), cast("VelodyneSpec", setting.spec).geometry)


def points_with_rows(
    lidar: LidarEmulator, first: int, payloads: npt.NDArray[np.uint8], truth: Truth
) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Decoded points of rendered packets from ``first`` on, and the row of ground truth of each."""
    packets = payloads.view(DATA_PACKET_DTYPE).reshape(-1)
    records = packets["blocks"]["channels"].reshape(-1, BLOCKS, RECORDS_PER_BLOCK)
    makes_point = records["distance"] > 0
    is_dual = RETURNS_BY_MODE_BYTE[packets["return_mode"]] > 1
    makes_point[is_dual, 1::2] &= records[is_dual, 1::2] != records[is_dual, ::2]  # a copy in a pair's second block gives none
    row_place = ((truth.packet - first) * BLOCKS + truth.block) * RECORDS_PER_BLOCK + truth.record
    return paired(decode_emulated(payloads, lidar.setting), np.flatnonzero(makes_point), row_place)


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
