"""Rows of ground truth of the points of a scan."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.read.scans.scan import Scan, ScanPackets
from hilsim.show.view.feed.mirror import Matched, RigMirror

_UNKNOWN = -1


def row_of_point(scan: Scan, packets: ScanPackets, mirror: RigMirror, index: int) -> tuple[Matched, int] | None:
    """Packet of a point, rendered again, and the point's row of ground truth; None if no packet of the rig has these bytes."""
    point = scan.points[index]
    place = int(point["packet"]) - packets.first
    for matched in mirror.match(scan.sensor, packets.payloads[place : place + 1], packets.stamp_ns[place : place + 1]):
        found = np.flatnonzero(
            (matched.decoded["time_ns"] == point["time"])
            & (matched.decoded["ring"] == point["ring"])
            & (matched.decoded["return_number"] == point["return"])
        )
        if found.size:
            return matched, int(matched.row[found[0]])
    return None


def origins(scan: Scan, packets: ScanPackets, mirror: RigMirror) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int16]] | None:
    """Object and label of each point of a scan, -1 where they are not known; None if no packet of the rig has its bytes."""
    instance, label = np.full(scan.points.size, _UNKNOWN, np.int32), np.full(scan.points.size, _UNKNOWN, np.int16)
    stretches = mirror.match(scan.sensor, packets.payloads, packets.stamp_ns)
    if not stretches:
        return None
    mine = _keys(scan.points["packet"].astype(np.int64) - packets.first, scan.points, "time", "return")
    for matched in stretches:
        theirs = _keys(matched.decoded["packet"].astype(np.int64) + matched.at, matched.decoded, "time_ns", "return_number")
        order = np.argsort(theirs, order=theirs.dtype.names)
        place = np.searchsorted(theirs[order], mine)
        place = np.minimum(place, max(theirs.size - 1, 0))
        hit = theirs[order[place]] == mine if theirs.size else np.zeros(mine.size, np.bool_)
        row = matched.row[order[place[hit]]]
        instance[hit], label[hit] = matched.truth.object_id[row], matched.truth.label[row]
    return instance, label


def _keys(packet: npt.NDArray[np.int64], points: npt.NDArray[Any], time: str, number: str) -> npt.NDArray[Any]:
    """Sortable keys of points: packet, time, laser, return."""
    keys = np.empty(points.size, [("packet", "<i8"), ("time", "<i8"), ("laser", "<i8")])
    keys["packet"], keys["time"] = packet, points[time]
    keys["laser"] = points["ring"].astype(np.int64) * 4 + points[number]
    return keys
