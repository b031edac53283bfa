"""Objects in recorded STDV packets of a Cepton: its points, which contain their directions, and are rewritten."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, signed, with_kernels
from hilsim.emulator.insertion.part import InsertionPart, RecordedRanges, RecordedSensor
from hilsim.emulator.insertion.unit import MAX_FIRINGS, RecordedFirings, RecordedUnit, build_recorded_unit
from hilsim.emulator.truth import Truth
from hilsim.families.cepton.packets import fits_point
from hilsim.families.cepton.protocol.stdv import (
    POINT_DTYPE,
    POINT_SIZE,
    POINT_UNIT_M,
    PointFlag,
    decode_stdv_points,
    point_at,
    points_of,
    read_stdv_header,
)
from hilsim.sensor.echoes import EchoChoice
from hilsim.sensor.optics.beam import Beam
from hilsim.sensor.response import Response, linear_ratios
from hilsim.world.geometry.poses import Pose

MAX_NEIGHBOUR = 2
"""A point without a return has the direction between, or beside, points of the same laser that are at most so many firings of it away."""

_MAX_STEPS, _MAX_FIRINGS, _POINT_SIZE = constant(MAX_NEIGHBOUR), constant(MAX_FIRINGS), constant(POINT_SIZE)
_NO_PLACE, _NO_SEQUENCE = constant(-1), constant(-1)
_SECOND, _NO_RETURN, _OF_ECHO = constant(PointFlag.SECOND_RETURN), constant(PointFlag.NO_RETURN), constant(PointFlag.SATURATED | PointFlag.NOISE)
_STRONGEST, _LAST_BESIDE_STRONGEST = constant(EchoChoice.STRONGEST), constant(EchoChoice.LAST_BESIDE_STRONGEST)
_UNIT_M = POINT_UNIT_M


@kernel
def _read_points(payload: npt.NDArray[np.uint8], size: int, recorded: RecordedFirings) -> int:
    at, point_size, points = points_of(payload, 0, size)
    count, time_us = 0, 0
    for _ in range(points):
        x, y, z, reflectivity, step_us, channel, flags = point_at(payload, at)
        time_us += step_us
        is_empty = flags & _NO_RETURN != 0 or (x == 0 and y == 0 and z == 0)
        length = math.sqrt(float(x * x + y * y + z * z))
        is_second = flags & _SECOND != 0 and count > 0 and recorded.channel[count - 1] == channel and recorded.place[count - 1, 1] < 0
        if not is_second:
            if count == _MAX_FIRINGS:
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
    """The nearest firing of the same laser, before or behind a firing, that has a return, among the ``MAX_NEIGHBOUR`` nearest; -1: none has."""
    passed, at = 0, firing + way
    while 0 <= at < count and passed < _MAX_STEPS:
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
def _read_firings(own: "RecordedPoints", payload: npt.NDArray[np.uint8], size: int, recorded: RecordedFirings) -> int:  # noqa: ARG001 - as of any family
    count = _read_points(payload, size, recorded)
    _aim_empty_points(recorded, count)
    return count


@kernel
def _choose_returns(own: "RecordedPoints", payload: npt.NDArray[np.uint8], choice: npt.NDArray[np.int64]) -> None:  # noqa: ARG001 - as of any family
    choice[0], choice[1] = _STRONGEST, _LAST_BESIDE_STRONGEST


@kernel
def _write_return(
    own: "RecordedPoints", recorded: RecordedFirings, firing: int, code: int, byte: int, marked: int, payload: npt.NDArray[np.uint8], place: int
) -> None:
    """Write a point; one that the packet cannot represent becomes a point without a return."""
    counts = code * own.unit_m / _UNIT_M
    x = math.floor(counts * recorded.direction[firing, 0] + 0.5)
    y = math.floor(counts * recorded.direction[firing, 1] + 0.5)
    z = math.floor(counts * recorded.direction[firing, 2] + 0.5)
    is_return = code > 0 and fits_point(x, y, z)
    flags = signed(payload[place + 9]) & ~(_OF_ECHO | _NO_RETURN)
    if not is_return:
        x, y, z, byte, marked = 0, 0, 0, 0, _NO_RETURN
    payload[place], payload[place + 1] = x & 0xFF, (x >> 8) & 0xFF
    payload[place + 2], payload[place + 3] = y & 0xFF, (y >> 8) & 0xFF
    payload[place + 4], payload[place + 5] = z & 0xFF, (z >> 8) & 0xFF
    payload[place + 6], payload[place + 9] = byte, flags | marked


@kernel
def _note_return(
    own: "RecordedPoints",  # noqa: ARG001 - as of any family
    recorded: RecordedFirings,  # noqa: ARG001
    firing: int,  # noqa: ARG001
    place: int,
    packet: int,  # noqa: ARG001
    payload: npt.NDArray[np.uint8],
    truth: Truth,
    row: int,
) -> None:
    """Write a point's row; its points do not show the index of the firing sequence."""
    x, y, z, reflectivity, _, _, _ = point_at(payload, place)
    truth.block[row], truth.record[row], truth.sequence[row] = 0, (place - signed(payload[5])) // _POINT_SIZE, _NO_SEQUENCE
    truth.distance[row] = int(np.floor(np.sqrt(float(x * x + y * y + z * z)) + 0.5))
    truth.reflectivity[row] = reflectivity


@with_kernels(read_firings=_read_firings, choose_returns=_choose_returns, write_return=_write_return, note_return=_note_return)
class RecordedPoints(NamedTuple):
    """Kernel-side part of a recorded Cepton.

    Attributes:
        unit_m: Unit of a distance code.
    """

    unit_m: float


def build_cepton_unit(response: Response, beam: Beam, mount: Pose, noise_m: npt.NDArray[np.float64]) -> RecordedUnit:
    """Build the kernel-side unit of a Cepton; arguments as of ``build_recorded_unit``."""
    return build_recorded_unit(RecordedPoints(response.unit_m), response, beam, mount, noise_m, ratio=linear_ratios(), byte_offset=6, is_swept=True)


def measure_points(payloads: Sequence[bytes]) -> RecordedRanges:
    """Ranges of the first returns in STDV packets, in their order, by laser."""
    headers = [read_stdv_header(payload) for payload in payloads]
    points = [decode_stdv_points(payload) for payload, header in zip(payloads, headers, strict=True) if header and header.point_size == POINT_SIZE]
    every = np.concatenate([np.zeros(0, POINT_DTYPE), *points])
    every = every[(every["flags"] & int(PointFlag.SECOND_RETURN)) == 0]
    counts = [every[axis].astype(np.float64) for axis in "xyz"]
    range_m = POINT_UNIT_M * np.sqrt(counts[0] ** 2 + counts[1] ** 2 + counts[2] ** 2)
    range_m[range_m == 0.0] = np.nan
    columns = [np.flatnonzero(every["channel"] == channel) for channel in np.unique(every["channel"])]
    length = min(map(len, columns), default=0)
    rows = np.array([column[:length] for column in columns], np.intp).reshape(len(columns), length).T
    return RecordedRanges(range_m[rows], every["reflectivity"].astype(np.int64)[rows], POINT_UNIT_M)


PART = InsertionPart(packets="a Cepton's points", recorded=lambda payloads: RecordedSensor(measure_points(payloads), build_cepton_unit))
