"""Scans of a feed (a daemon, a capture that plays, a port) for live outputs, as they come."""

import time
from collections.abc import Iterator

import numpy as np

from hilsim.geometry.poses import Pose
from hilsim.geometry.rotations import normalise
from hilsim.outputs.events import HOUR_NS, OutputScan, SourceInfo, StateReport, first_time_ns, output_points
from hilsim.outputs.sources import SENSOR_FROM_ROS, return_types, utc_ns
from hilsim.scans.scan import IDENTITY_WXYZ, Scan
from hilsim.view.feed.base import Feed

_PAUSE_S = 0.005
_STATE_S = 1.0


class LiveEvents:
    """Scans of all sensors of a feed, in the order in which they are complete, and once a second the state of a daemon.

    Attributes:
        skipped: Scans that were gone before they could be taken.
    """

    def __init__(self, feed: Feed, info: SourceInfo) -> None:
        """Take scans from now on."""
        self.skipped = 0
        self._feed, self._info = feed, info
        self._next: dict[str, int] = {}

    def take(self) -> list[OutputScan]:
        """The scans that are new."""
        found = []
        for sensor in self._feed.sensors():
            self._info.models.setdefault(sensor, "")
            for scan in self._feed.scans_since(sensor, self._next.get(sensor, 0)):
                expected = self._next.get(sensor, scan.number)
                self.skipped += scan.number - expected
                self._next[sensor] = scan.number + 1
                found.append(_output_scan(scan))
        return sorted(found, key=lambda scan: scan.stamp_ns)

    def __iter__(self) -> Iterator[OutputScan | StateReport]:
        """Wait for events for ever."""
        reported_s = float("-inf")
        while True:
            if time.monotonic() - reported_s >= _STATE_S and (state := self._feed.status()) is not None:
                reported_s = time.monotonic()
                yield StateReport(stamp_ns=time.time_ns(), state=state)
            some = self.take()
            yield from some
            if not some:
                time.sleep(_PAUSE_S)


def _output_scan(scan: Scan) -> OutputScan:
    points = scan.points
    counts_hours = not points.size or int(points["time"].max()) < 2 * HOUR_NS
    first_ns = first_time_ns(points, counts_hours=counts_hours)
    stamp_ns, is_sensor_time = utc_ns(first_ns, scan.stamp_ns, counts_hours=counts_hours)
    made = output_points(points, first_ns, return_types(points))
    if scan.label is not None and scan.instance is not None:
        made["label"], made["instance"] = scan.label, scan.instance
    is_placed = scan.wxyz != IDENTITY_WXYZ or scan.position_m != (0.0, 0.0, 0.0)
    w, x, y, z = np.asarray(scan.wxyz, dtype=np.float64).tolist()
    return OutputScan(
        sensor=scan.sensor,
        number=scan.number,
        stamp_ns=stamp_ns,
        is_sensor_time=is_sensor_time,
        points=made,
        is_labelled=scan.label is not None,
        pose=Pose(position_m=scan.position_m, orientation=normalise((w, x, y, z))) @ SENSOR_FROM_ROS if is_placed else None,
    )
