"""Faults with constant keys: metrics, alerts and the log identify a fault by key and subject; the text is for people."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from hilsim.config.part_tables import known_kinds
from hilsim.errors import require


class Level(StrEnum):
    """Health of the daemon, best first."""

    HEALTHY = "healthy"
    """All requested functions work."""
    DEGRADED = "degraded"
    """Some packets are missing or late, or a function beside the stream has failed; the stream is usable."""
    UNHEALTHY = "unhealthy"
    """A requested function has failed: ``/healthz`` answers 503."""


_ORDER = tuple(Level)

FAULTS = {
    "starting": "The daemon is starting and sends nothing yet",
    "real_time_left": "A thread of the packet path has left real-time scheduling, because sleeping failed",
    "loop_ended": "The sending loop has ended",
    "loop_stalled": "The sending loop has not run for a second",
    "render_ended": "The thread that renders a sensor has ended",
    "sensor_silent": "A sensor has sent no data packet for a second",
    "rays_given_up": "A sensor is rendered with fewer rays per beam than configured, so that no packet is missed",
    "device_missing": "The configured GPU is missing or has failed: the CPU casts the rays",
    "packets_missed": "Packets were not rendered in time, or too late to be sent",
    "packets_late": "Packets were sent late, or rendered after they were due",
    "send_refused": "The kernel refused packets",
    "udp_dropped": "The kernel dropped accepted datagrams before any interface",
    "queue_dropped": "The queue or the driver of an interface dropped packets",
    "recording_ended": "The recording has ended early",
    "recording_incomplete": "Sent packets are missing from the recording",
    "follower_slow": "A program that follows the sent packets, such as a view, reads too slowly; the packets themselves left",
    "clock_stepped": "The host's UTC differs from the UTC in packets",
    "serial_device_ended": "The thread of a serial device has ended",
    "health_unwatched": "The counters have not been read for some seconds",
}
"""Keys of the core and their meanings; with those of parts (``all_faults``) listed in ``docs/reference/metrics.md``, and each has an alert in ``systemd/prometheus/hilsim.rules.yml``."""


def all_faults() -> dict[str, str]:
    """Keys of the core, of hilsim's own parts, and of those that a rig of this process has."""
    return FAULTS | {key: meaning for kind in known_kinds() for key, meaning in kind.faults.items()}


class InjectedFault(NamedTuple):
    """A fault on command: its name, kind, target, and whether it acts."""

    fault: str
    kind: str
    on: str
    acts: bool


DAEMON = "daemon"
"""Subject of faults that concern no single sensor, replay or interface."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault of the daemon.

    Attributes:
        key: One of ``all_faults``.
        subject: Affected sensor, replay, interface …; a name from the rig or of the host, or ``DAEMON``.
        text: Description with figures; it may change while the fault is the same.
        level: Severity.
        since_ns: CLOCK_MONOTONIC time when it was detected; None if not recorded yet.
    """

    key: str
    text: str
    subject: str = DAEMON
    level: Level = Level.UNHEALTHY
    since_ns: int | None = None

    def __post_init__(self) -> None:
        known = FAULTS if self.key in FAULTS else all_faults()
        require(
            (self.key in known, f"fault key must be one of {', '.join(known)}, got {self.key}"),
            (self.level is not Level.HEALTHY, f"a fault must be degraded or unhealthy, got {self.level}"),
        )

    @property
    def identity(self) -> tuple[str, str]:
        """Identity of the fault over time: key and subject."""
        return (self.key, self.subject)

    @property
    def sentence(self) -> str:
        """Sentence for messages."""
        return self.text if self.subject == DAEMON else f"{self.subject}: {self.text}"


def worst_level(faults: tuple[Fault, ...]) -> Level:
    """Worst level of some faults; healthy if there are none."""
    return max((fault.level for fault in faults), key=_ORDER.index, default=Level.HEALTHY)
