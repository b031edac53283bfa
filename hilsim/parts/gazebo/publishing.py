"""The thread of a lidar: it measures at the same times as Gazebo, and publishes the subscribed topics."""

import threading
import time

from hilsim.parts.gazebo.lidar import GazeboLidar
from hilsim.parts.gazebo.transport import Transport
from hilsim.world.sdf.specs import SdfLidar

SCAN, CLOUD = "LaserScan", "PointCloudPacked"
_MARGIN_S = 0.05
_LONGEST_WAIT_S = 0.5


def points_topic(topic: str) -> str:
    """Topic of a lidar's points."""
    return f"{topic.rstrip('/')}/points"


def topics_of(lidar: SdfLidar) -> tuple[tuple[str, str], tuple[str, str]]:
    """Topics of a lidar with their message types."""
    return (lidar.scoped_topic, SCAN), (points_topic(lidar.scoped_topic), CLOUD)


class LidarPublisher:
    """Publishes one lidar.

    Args:
        lidar: Lidar to publish.
        transport: Transport to publish with.

    Attributes:
        scans: Number of measurements made.
        messages: Number of messages sent to the transport.
        skipped: Number of measurements skipped because earlier ones took too long.
    """

    def __init__(self, lidar: GazeboLidar, transport: Transport) -> None:
        self.lidar = lidar
        self.scans = self.messages = self.skipped = 0
        self._transport = transport
        self._topics = lidar.spec.scoped_topic, points_topic(lidar.spec.scoped_topic)
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, epoch_ns: int) -> None:
        """Start measuring at rig time 0; ``epoch_ns`` is its CLOCK_MONOTONIC time."""
        self._thread = threading.Thread(target=self._run, args=(epoch_ns,), name="gazebo-lidar", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def has_started(self) -> bool:
        """Whether it was stopped."""
        return self._thread is not None

    @property
    def alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread is not None and self._thread.is_alive()

    def _run(self, epoch_ns: int) -> None:
        period_ns, due_ns = self.lidar.period_ns, 0
        while not self._ends.is_set():
            left_s = (epoch_ns + due_ns - time.monotonic_ns()) * 1e-9
            if left_s > 0.0:
                self._ends.wait(min(left_s, _LONGEST_WAIT_S))
                continue
            if -left_s > period_ns * 1e-9 + _MARGIN_S:
                late = int(-left_s * 1e9) // period_ns
                self.skipped += late
                due_ns += late * period_ns
                continue
            self._measure(due_ns)
            due_ns += period_ns

    def _measure(self, time_ns: int) -> None:
        """Measure once if there is a subscriber: publish the scan, then its points."""
        wants_scan, wants_points = map(self._transport.wants, self._topics)
        if not (wants_scan or wants_points):
            return
        ranges_m = self.lidar.ranges_m(time_ns)
        self.scans += 1
        if wants_scan:
            self._transport.publish(self._topics[0], self.lidar.laser_scan(ranges_m, time_ns=time_ns, sequence=self.messages))
            self.messages += 1
        if wants_points:
            self._transport.publish(self._topics[1], self.lidar.point_cloud(ranges_m, time_ns=time_ns, sequence=self.messages))
            self.messages += 1
