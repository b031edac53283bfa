"""Scans, packets and the scene of a feed (a daemon, a capture that plays, a port) for live outputs, as they come."""

import time
from collections.abc import Iterator, Sequence

import numpy as np

from hilsim.api.packet import Packet
from hilsim.read.scans.scan import IDENTITY_WXYZ, Scan
from hilsim.show.outputs.events import HOUR_NS, Event, OutputScan, SourceInfo, StateReport, first_time_ns, output_points
from hilsim.show.outputs.scene import SceneChanges
from hilsim.show.outputs.sources import SENSOR_FROM_ROS, return_types, utc_ns
from hilsim.show.view.feed.base import Feed, PacketFeed, SceneFeed
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import normalise

_PAUSE_S = 0.005
_STATE_S = 1.0
_SCENE_S = 0.1


class LiveEvents:
    """Packets and scans of all sensors of a feed, as they come, changes of the scene, and once a second the state of a daemon.

    Attributes:
        skipped: Scans that were gone before they could be taken.
    """

    def __init__(self, feed: Feed, info: SourceInfo) -> None:
        """Take scans from now on."""
        self.skipped = 0
        self._feed, self._info = feed, info
        self._next: dict[str, int] = {}
        self._scene = SceneChanges()
        self._state_s = self._scene_s = float("-inf")

    @property
    def skipped_packets(self) -> int:
        """Packets that were gone before they could be taken."""
        return self._feed.dropped_packets if isinstance(self._feed, PacketFeed) else 0

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

    def __iter__(self) -> Iterator[Event]:
        """Wait for events for ever."""
        while True:
            yield from self._state()
            yield from self._shapes()
            packets = self._packets()
            yield from packets
            scans = self.take()
            yield from scans
            if not packets and not scans:
                time.sleep(_PAUSE_S)

    def _state(self) -> Iterator[Event]:
        if time.monotonic() - self._state_s >= _STATE_S and (state := self._feed.status()) is not None:
            self._state_s = time.monotonic()
            yield StateReport(stamp_ns=time.time_ns(), state=state)

    def _shapes(self) -> Iterator[Event]:
        """Changes of the scene, seldom enough for objects that move all the time."""
        if not isinstance(self._feed, SceneFeed) or time.monotonic() - self._scene_s < _SCENE_S:
            return
        self._scene_s, stamp_ns = time.monotonic(), time.time_ns()
        shapes = self._feed.shapes(stamp_ns)
        event = self._scene.event(shapes, stamp_ns) if shapes is not None else None
        if event is not None:
            yield event

    def _packets(self) -> Sequence[Packet]:
        return self._feed.packets() if isinstance(self._feed, PacketFeed) else ()


def _output_scan(scan: Scan) -> OutputScan:
    points = scan.points
    cycle_ns = HOUR_NS if not points.size or int(points["time"].max()) < 2 * HOUR_NS else 0
    first_ns = first_time_ns(points, cycle_ns=cycle_ns)
    stamp_ns, is_sensor_time = utc_ns(first_ns, scan.stamp_ns, cycle_ns=cycle_ns)
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
        host_stamp_ns=scan.stamp_ns,
        points=made,
        is_labelled=scan.label is not None,
        pose=Pose(position_m=scan.position_m, orientation=normalise((w, x, y, z))) @ SENSOR_FROM_ROS if is_placed else None,
    )
