"""Points of an emulated lidar with their origins: the decoder's points combined with the ground truth's rows.

Both give the offset of their bytes, by which they are paired. A pair with different bytes is an error of this program.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.api.points import POINT_DTYPE, public_points
from hilsim.emulator.batch import DatagramBatch
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.truth import Truth, packets_with_truth
from hilsim.read.analysis.decode import own_part


def labelled_packets(lidar: LidarEmulator, first: int, count: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]:
    """Render data packets and their points.

    Args:
        lidar: Emulated lidar.
        first: Index of the first packet.
        count: Number of packets.

    Returns:
        Payloads ``uint8[count, size]``, and points ``POINT_DTYPE[n]``, with the family's ``FURTHER_FIELDS``, in the order of their bytes.
    """
    packets, truth = packets_with_truth(lidar, first, count)
    return labelled_points(lidar, first, packets, truth)


def labelled_points(lidar: LidarEmulator, first: int, packets: DatagramBatch, truth: Truth) -> tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]:
    """Payloads and points of rendered packets with their ground truth; arguments and results as in ``labelled_packets``."""
    payloads = np.ascontiguousarray(packets.payload[:, lidar.data_framing.header_size :])
    decoded, row = points_with_rows(lidar, first, payloads, truth)
    further = getattr(own_part(lidar.setting, "points"), "FURTHER_FIELDS", ())
    points = public_points(decoded, np.dtype([*POINT_DTYPE.descr, *further]))
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

    Raises:
        ValueError: packets of its family cannot be decoded here.
    """
    decoded, row = own_part(lidar.setting, "points").points_with_rows(lidar, first, payloads, truth)
    if not np.array_equal(truth.reflectivity[row], decoded["intensity"]):
        raise AssertionError("points and their rows of ground truth must refer to the same bytes, got different ones")
    return decoded, row
