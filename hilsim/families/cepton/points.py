"""Points of Cepton STDV packets, decoded like a driver of the lidar does."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays, read_only
from hilsim.compilation.jit import constant, kernel
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.setting import LidarSetting
from hilsim.emulator.truth import Truth
from hilsim.families.cepton.protocol.stdv import POINT_UNIT_M, POINTS_MAX, PointFlag, decode_stdv_points, point_at, points_of, stamp_us_at
from hilsim.read.analysis.decode import POINT_DTYPE, batch_of, paired
from hilsim.units import CDEG_PER_RAD, TURN_CDEG

_NO_RETURN, _SECOND_RETURN = constant(PointFlag.NO_RETURN), constant(PointFlag.SECOND_RETURN)
_UNIT_M = POINT_UNIT_M


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


def decode_emulated(payloads: npt.NDArray[np.uint8], _setting: LidarSetting) -> npt.NDArray[Any]:
    """Decode the packets ``uint8[n, size]`` of one emulated sensor, as ``decode_cepton`` does."""
    return decode_cepton(batch_of(payloads))


def points_with_rows(
    lidar: LidarEmulator, first: int, payloads: npt.NDArray[np.uint8], truth: Truth
) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Decoded points of rendered packets from ``first`` on, and the row of ground truth of each."""
    flags = [decode_stdv_points(payload.tobytes())["flags"] for payload in payloads]
    places = [packet * POINTS_MAX + np.flatnonzero(flag & PointFlag.NO_RETURN == 0) for packet, flag in enumerate(flags)]
    row_place = (truth.packet - first) * POINTS_MAX + truth.record
    return paired(decode_emulated(payloads, lidar.setting), np.concatenate([np.zeros(0, np.intp), *places]), row_place)


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
