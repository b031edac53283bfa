"""Faults by keys that never change: metrics, alerts and the log identify faults by key and subject, people read the text."""

from dataclasses import dataclass
from enum import StrEnum

from hilsim.errors import require


class Level(StrEnum):
    """How the daemon is, best first."""

    HEALTHY = "healthy"
    """Everything that was asked for is done."""
    DEGRADED = "degraded"
    """Some packets are missing or late, or something beside the stream is not right; the stream can be used."""
    UNHEALTHY = "unhealthy"
    """Something that was asked for is not done: ``/healthz`` answers 503."""


_ORDER = tuple(Level)

FAULTS = {
    "starting": "Nothing is sent yet: the daemon is getting ready",
    "real_time_left": "A thread of the packet path has left real-time scheduling, because sleeping failed",
    "loop_ended": "The sending loop has ended",
    "loop_stalled": "The sending loop has not turned for a second",
    "render_ended": "The thread that renders a sensor has ended",
    "sensor_silent": "A sensor has sent no data packet for a second",
    "rays_given_up": "A sensor is rendered with fewer rays a beam than the rig asks for, so that no packet is missed",
    "device_missing": "The GPU that the rig asks for is not there, or has failed: the cores cast the rays",
    "packets_missed": "Packets were not rendered in time, or too late to be sent",
    "packets_late": "Packets were sent late, or rendered after they were due",
    "send_refused": "The kernel refused packets",
    "udp_dropped": "The kernel dropped datagrams that it had accepted, before any interface",
    "queue_dropped": "The queue or the driver of an interface dropped packets",
    "replay_failed": "A capture is not replayed any more",
    "rovers_ended": "A thread of the rovers has ended",
    "cycles_missed": "Cycles of a rover were not begun in time, or had no scan",
    "scans_ended": "A rover's file of scans is not read any more",
    "scans_missed": "Scans of a lidar for Gazebo's subscribers were left out, because those before took too long",
    "gazebo_ended": "A lidar is not published to Gazebo's subscribers any more",
    "recording_ended": "The recording has ended too early",
    "recording_incomplete": "Packets that were sent are missing from the recording",
    "clock_stepped": "The host's UTC is no longer the one that packets carry",
    "flight_ended": "The thread that flies the vehicle has ended",
    "serial_device_ended": "The thread of a serial device has ended",
    "observer_ended": "The thread that sends obstacle data to the controller has ended",
    "health_unwatched": "The counters have not been read for some seconds",
}
"""Every key and its meaning; ``docs/reference/metrics.md`` shows them, and each has one alert in ``systemd/prometheus/hilsim.rules.yml``."""

DAEMON = "daemon"
"""Subject of what concerns no sensor, replay or interface alone."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that is not as it should be.

    Attributes:
        key: One of ``FAULTS``.
        subject: Which sensor, replay, interface …; a name from the rig or of the host, or ``DAEMON``.
        text: What is wrong, with figures; it may change while the fault is the same.
        level: How bad it is.
        since_ns: CLOCK_MONOTONIC time when it was found; None if not recorded yet.
    """

    key: str
    text: str
    subject: str = DAEMON
    level: Level = Level.UNHEALTHY
    since_ns: int | None = None

    def __post_init__(self) -> None:
        require(
            (self.key in FAULTS, f"fault key must be one of {', '.join(FAULTS)}, got {self.key}"),
            (self.level is not Level.HEALTHY, f"a fault must be degraded or unhealthy, got {self.level}"),
        )

    @property
    def identity(self) -> tuple[str, str]:
        """What makes it the same fault a moment later."""
        return (self.key, self.subject)

    @property
    def sentence(self) -> str:
        """For people."""
        return self.text if self.subject == DAEMON else f"{self.subject}: {self.text}"


def worst_level(faults: tuple[Fault, ...]) -> Level:
    """The worst of them; healthy where there are none."""
    return max((fault.level for fault in faults), key=_ORDER.index, default=Level.HEALTHY)
