"""The firings of a recorded data packet: direction, time, and the bytes that hold their returns."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference, constant, kernel, signed
from hilsim.emulator.insertion.unit import PacketFormat, RecordedUnit
from hilsim.families.cepton.protocol.stdv import POINT_UNIT_M, PointFlag, point_at, points_of
from hilsim.families.velodyne.protocol.data import BLOCKS, DATA_PACKET_SIZE, RECORDS_PER_BLOCK, RETURNS_BY_MODE_BYTE
from hilsim.families.velodyne.protocol.firing import block_azimuth_cdeg, data_stamp_us, fired_cdeg, first_step_cdeg, packet_step_cdeg, step_between

MOST_FIRINGS = BLOCKS * RECORDS_PER_BLOCK
"""Firings of a packet: 384 records of a Velodyne's; a Cepton's point packet holds up to 144."""

RETURNS = 2
"""Returns of a firing, at most."""

FARTHEST_NEIGHBOUR = 2
"""A Cepton's point without a return has the direction between, or beside, points of the same laser that are at most so many firings of it away."""

_BLOCKS, _RECORDS, _RETURNS, _NO_PLACE = constant(BLOCKS), constant(RECORDS_PER_BLOCK), constant(RETURNS), constant(-1)
_SIZE, _CEPTON, _MOST_FIRINGS = constant(DATA_PACKET_SIZE), constant(PacketFormat.CEPTON), constant(MOST_FIRINGS)
_SECOND, _NO_RETURN = constant(PointFlag.SECOND_RETURN), constant(PointFlag.NO_RETURN)
_FARTHEST, _CHANNELS = constant(FARTHEST_NEIGHBOUR), constant(256)
_UNIT_M = POINT_UNIT_M


@by_reference
class RecordedFirings(NamedTuple):
    """Firings of a packet: ``F`` rows, ``MOST_FIRINGS``, of which the first ones are used.

    Attributes:
        azimuth_cdeg: ``float64[F]``, azimuth of a Velodyne's firing, 0.01 deg.
        elevation_rad: ``float64[F]``, elevation of its laser.
        direction: ``float64[F, 3]``, unit vectors in the sensor frame; zeros where a direction is not known. Of a Velodyne's firings those alone that may meet
            an object get one.
        height_m: ``float64[F]``, height of the laser's origin above the sensor's.
        time_ns: ``int64[F]``, from the packet's stamp to the firing.
        channel: ``int64[F]``, laser.
        place: ``int64[F, 2]``, byte of each return's record or point in the packet, in the packet's order; -1: there is none.
        range_m: ``float64[F, 2]``, range of each return; ``inf`` where there is none.
        byte: ``int64[F, 2]``, its reflectivity byte.
        state: ``int64[4]``: azimuth (0.01 deg) and stamp (us) of the last packet read, 1 once there is one, and the number of its firings.
    """

    azimuth_cdeg: npt.NDArray[np.float64]
    elevation_rad: npt.NDArray[np.float64]
    direction: npt.NDArray[np.float64]
    height_m: npt.NDArray[np.float64]
    time_ns: npt.NDArray[np.int64]
    channel: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    range_m: npt.NDArray[np.float64]
    byte: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]


def allocate_recorded_firings() -> RecordedFirings:
    """Allocate arrays for the firings of one packet."""
    return RecordedFirings(
        azimuth_cdeg=np.zeros(MOST_FIRINGS),
        elevation_rad=np.zeros(MOST_FIRINGS),
        direction=np.zeros((MOST_FIRINGS, 3)),
        height_m=np.zeros(MOST_FIRINGS),
        time_ns=np.zeros(MOST_FIRINGS, np.int64),
        channel=np.zeros(MOST_FIRINGS, np.int64),
        place=np.zeros((MOST_FIRINGS, RETURNS), np.int64),
        range_m=np.zeros((MOST_FIRINGS, RETURNS)),
        byte=np.zeros((MOST_FIRINGS, RETURNS), np.int64),
        state=np.zeros(4, np.int64),
    )


@kernel
def _read_velodyne(unit: RecordedUnit, payload: npt.NDArray[np.uint8], recorded: RecordedFirings) -> int:
    firings = unit.firings
    returns = RETURNS_BY_MODE_BYTE[payload[1204]]
    group_blocks = firings.blocks * returns
    stamp_us, first_cdeg, state = data_stamp_us(payload), block_azimuth_cdeg(payload, 0), recorded.state
    step_cdeg = float(first_step_cdeg(payload, group_blocks))
    if step_cdeg < 0.0:
        step_cdeg = max(step_between(firings, state[0], state[1], first_cdeg, stamp_us), 0.0) if state[2] != 0 else 0.0
    state[0], state[1], state[2] = first_cdeg, stamp_us, 1
    groups = _BLOCKS // group_blocks
    group_ns = -((groups - 1) * firings.group_ns + firings.time_ns[firings.time_ns.size - 1]) if unit.stamps_last_firing else 0
    # Taken out of the loop: each look into a tuple inside would count references with an atomic instruction.
    share, offset_cdeg, laser_rad, offset_ns, unit_m = (
        firings.share,
        firings.offset_cdeg,
        firings.elevation_rad,
        firings.time_ns,
        firings.unit_mm * 1e-3,
    )
    record_channel, origin_height_m = unit.record_channel, unit.origin_height_m
    azimuth_of, elevation_rad, height_m, time_ns = recorded.azimuth_cdeg, recorded.elevation_rad, recorded.height_m, recorded.time_ns
    channel, places, range_m, byte = recorded.channel, recorded.place, recorded.range_m, recorded.byte
    count = 0
    for group in range(groups):
        first = group * group_blocks
        read_step_cdeg = packet_step_cdeg(payload, first, group_blocks)
        step_cdeg = float(read_step_cdeg) if read_step_cdeg >= 0 else step_cdeg
        for record in range(share.size):
            block = first + record // _RECORDS * returns
            azimuth_cdeg = float(block_azimuth_cdeg(payload, block))
            azimuth_of[count] = fired_cdeg(azimuth_cdeg, step_cdeg, share[record], offset_cdeg[record])
            elevation_rad[count], height_m[count] = laser_rad[record], origin_height_m[record]
            time_ns[count], channel[count] = group_ns + offset_ns[record], record_channel[record]
            for number in range(_RETURNS):
                place = 100 * (block + number) + 4 + 3 * (record % _RECORDS) if number < returns else _NO_PLACE
                raw = signed(payload[place]) | signed(payload[place + 1]) << 8 if place >= 0 else 0
                places[count, number] = place
                range_m[count, number] = raw * unit_m if raw > 0 else np.inf
                byte[count, number] = payload[place + 2] if place >= 0 else 0
            count += 1
        group_ns += firings.group_ns
    return count


@kernel
def _read_cepton(payload: npt.NDArray[np.uint8], size: int, recorded: RecordedFirings) -> int:
    at, point_size, points = points_of(payload, 0, size)
    count, time_us = 0, 0
    for _ in range(points):
        x, y, z, reflectivity, step_us, channel, flags = point_at(payload, at)
        time_us += step_us
        is_empty = flags & _NO_RETURN != 0 or (x == 0 and y == 0 and z == 0)
        length = math.sqrt(float(x * x + y * y + z * z))
        is_second = flags & _SECOND != 0 and count > 0 and recorded.channel[count - 1] == channel and recorded.place[count - 1, 1] < 0
        if not is_second:
            if count == _MOST_FIRINGS:
                break
            recorded.direction[count, :] = 0.0
            recorded.height_m[count] = 0.0
            recorded.time_ns[count] = 1000 * time_us
            recorded.channel[count] = channel
            recorded.place[count, 1] = _NO_PLACE
            recorded.range_m[count, 1] = np.inf
            count += 1
        firing, number = count - 1, 1 if is_second else 0
        recorded.place[firing, number] = at
        recorded.range_m[firing, number] = np.inf if is_empty else length * _UNIT_M
        recorded.byte[firing, number] = reflectivity
        if number == 0 and not is_empty:
            recorded.direction[firing, 0], recorded.direction[firing, 1], recorded.direction[firing, 2] = x / length, y / length, z / length
        at += point_size
    return count


@kernel
def _neighbour(recorded: RecordedFirings, count: int, firing: int, way: int) -> int:
    """The nearest firing of the same laser, before or behind a firing, that has a return, among the ``FARTHEST_NEIGHBOUR`` nearest; -1: none has."""
    passed, at = 0, firing + way
    while 0 <= at < count and passed < _FARTHEST:
        if recorded.channel[at] == recorded.channel[firing]:
            if recorded.range_m[at, 0] != np.inf:
                return at
            passed += 1
        at += way
    return -1


@kernel
def _aim_empty_points(recorded: RecordedFirings, count: int) -> None:
    """Give points without a return the direction that those of the same laser before and behind them have at their time."""
    for firing in range(count):
        if recorded.range_m[firing, 0] != np.inf:
            continue
        earlier, later = _neighbour(recorded, count, firing, -1), _neighbour(recorded, count, firing, 1)
        if earlier < 0 or later < 0:
            continue
        passed_ns = recorded.time_ns[later] - recorded.time_ns[earlier]
        share = (recorded.time_ns[firing] - recorded.time_ns[earlier]) / passed_ns if passed_ns > 0 else 0.5
        squares = 0.0
        for axis in range(3):
            between = recorded.direction[earlier, axis] + share * (recorded.direction[later, axis] - recorded.direction[earlier, axis])
            recorded.direction[firing, axis] = between
            squares += between * between
        for axis in range(3):
            recorded.direction[firing, axis] /= math.sqrt(squares)


@kernel
def read_firings(unit: RecordedUnit, payload: npt.NDArray[np.uint8], size: int, recorded: RecordedFirings) -> int:
    """Read the firings of a data packet.

    Args:
        unit: The unit that recorded it.
        payload: ``uint8[>= size]``, the packet.
        size: Bytes of the packet.
        recorded: Written.

    Returns:
        Number of firings; 0 of what is no data packet of the unit's family.
    """
    count = 0
    if unit.packet_format == _CEPTON:
        count = _read_cepton(payload, size, recorded)
        _aim_empty_points(recorded, count)
    elif size == _SIZE:
        count = _read_velodyne(unit, payload, recorded)
    recorded.state[3] = count
    return count
