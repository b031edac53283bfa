"""Points of an emulated lidar with their origins: the decoder's points combined with the ground truth's rows.

Both give the offset of their bytes, by which they are paired. A pair with different bytes is an error of this program.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.analysis.decode import decode_emulated
from hilsim.api.points import POINT_DTYPE, public_points
from hilsim.emulator.batch import DatagramBatch
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.truth import Truth, packets_with_truth
from hilsim.families.cepton.protocol.stdv import POINTS_MAX, PointFlag, decode_stdv_points
from hilsim.families.ouster.specs import OusterSpec
from hilsim.families.velodyne.protocol.data import BLOCKS, DATA_PACKET_DTYPE, RECORDS_PER_BLOCK, RETURNS_BY_MODE_BYTE
from hilsim.families.velodyne.specs import VelodyneSpec


def labelled_packets(lidar: LidarEmulator, first: int, count: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]:
    """Render data packets and their points.

    Args:
        lidar: Emulated lidar.
        first: Index of the first packet.
        count: Number of packets.

    Returns:
        Payloads ``uint8[count, size]``, and points ``POINT_DTYPE[n]`` in the order of their bytes.
    """
    packets, truth = packets_with_truth(lidar, first, count)
    return labelled_points(lidar, first, packets, truth)


def labelled_points(lidar: LidarEmulator, first: int, packets: DatagramBatch, truth: Truth) -> tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]:
    """Payloads and points of rendered packets with their ground truth; arguments and results as in ``labelled_packets``."""
    payloads = np.ascontiguousarray(packets.payload[:, lidar.data_framing.header_size :])
    decoded, row = points_with_rows(lidar, first, payloads, truth)
    points = public_points(decoded, POINT_DTYPE)
    points["time"], points["label"], points["instance"] = truth.time_ns[row], truth.label[row], truth.object_id[row]
    return payloads, points


def points_with_rows(
    lidar: LidarEmulator, first: int, payloads: npt.NDArray[np.uint8], truth: Truth
) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Decoded points of rendered packets, and the row of ground truth of each.

    Args:
        lidar: Emulated lidar.
        first: Index of the first packet.
        payloads: ``uint8[count, size]``, payloads of the packets.
        truth: Ground truth of the packets.
    """
    if isinstance(lidar.setting.spec, OusterSpec):
        return _ouster_points(lidar, first, payloads, truth)
    decoded = decode_emulated(payloads, lidar.setting)
    if isinstance(lidar.setting.spec, VelodyneSpec):
        place = _velodyne_places(payloads)
        row_place = ((truth.packet - first) * BLOCKS + truth.block) * RECORDS_PER_BLOCK + truth.record
    else:
        place = _cepton_places(payloads)
        row_place = (truth.packet - first) * POINTS_MAX + truth.record
    row = np.searchsorted(row_place, place)
    if decoded.size != place.size or not np.array_equal(row_place[row[row < row_place.size]], place):
        raise AssertionError(f"each of {decoded.size} points must have a row of ground truth, got {row_place.size} rows for {place.size} places")
    _check_bytes(decoded, truth, row)
    return decoded, row


def _check_bytes(decoded: npt.NDArray[Any], truth: Truth, row: npt.NDArray[np.intp]) -> None:
    if not np.array_equal(truth.reflectivity[row], decoded["intensity"]):
        raise AssertionError("points and their rows of ground truth must refer to the same bytes, got different ones")


def _ouster_points(lidar: LidarEmulator, first: int, payloads: npt.NDArray[np.uint8], truth: Truth) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """``points_with_rows`` of an Ouster: both are in the order of columns, beams and returns. Its packets may have other forms after a change."""
    found = []
    begin = 0
    while begin < len(payloads):
        present, stop = lidar.at_packet(first + begin), begin + 1
        while stop < len(payloads) and lidar.at_packet(first + stop) is present:
            stop += 1
        found.append(decode_emulated(payloads[begin:stop], present.setting))
        begin = stop
    decoded = np.concatenate(found) if found else decode_emulated(payloads, lidar.setting)
    if decoded.size != truth.packet.size:
        raise AssertionError(f"each of {decoded.size} points must have a row of ground truth, got {truth.packet.size} rows")
    row = np.arange(decoded.size)
    _check_bytes(decoded, truth, row)
    return decoded, row


def _velodyne_places(payloads: npt.NDArray[np.uint8]) -> npt.NDArray[np.intp]:
    """Indices of the records that give points, over all packets: all with a return, except copies in a pair's second block."""
    records = payloads.view(DATA_PACKET_DTYPE)["blocks"]["channels"].reshape(-1, BLOCKS, RECORDS_PER_BLOCK)
    makes_point = records["distance"] > 0
    is_dual = RETURNS_BY_MODE_BYTE[payloads.view(DATA_PACKET_DTYPE).reshape(-1)["return_mode"]] > 1
    makes_point[is_dual, 1::2] &= records[is_dual, 1::2] != records[is_dual, ::2]
    return np.flatnonzero(makes_point)


def _cepton_places(payloads: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Indices of the points with a return, with ``POINTS_MAX`` for each packet."""
    flags = [decode_stdv_points(payload.tobytes())["flags"] for payload in payloads]
    found = [packet * POINTS_MAX + np.flatnonzero(flag & PointFlag.NO_RETURN == 0) for packet, flag in enumerate(flags)]
    return np.concatenate([np.zeros(0, np.int64), *found])
