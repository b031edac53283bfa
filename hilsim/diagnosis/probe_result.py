"""The result of probing a flight controller at a port, as values: the material of a diagnosis."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from hilsim.autopilot.session import ARMED_FLAG, HIL_FLAG
from hilsim.links.line import Line

PX4, ARDUPILOT, NO_AUTOPILOT = 12, 3, 8
"""MAV_AUTOPILOT values; the last is sent by devices that are no flight controller."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """Where a controller was listened for.

    Attributes:
        path: As it was asked for.
        device: The device now, or the peer of a network link.
        lasting_name: What finds it again when it was unplugged; ``path`` where there is no better name.
        line: What carries its bytes.
    """

    path: str
    device: str
    lasting_name: str
    line: Line


@dataclass(frozen=True, kw_only=True)
class Beat:
    """A HEARTBEAT with its sender."""

    system: int
    component: int
    vehicle_type: int
    autopilot: int
    base_mode: int

    @property
    def is_armed(self) -> bool:
        """Whether motors may turn."""
        return bool(self.base_mode & ARMED_FLAG)

    @property
    def has_hil(self) -> bool:
        """Whether its flag of hardware in the loop is set."""
        return bool(self.base_mode & HIL_FLAG)


@dataclass(frozen=True, kw_only=True)
class Stream:
    """One kind of message while it was listened to.

    Attributes:
        id: Message id.
        frames: How many came.
        bytes: Of these frames.
    """

    id: int
    frames: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Health:
    """SYS_STATUS: bits of the sensors that are to work and that do, and the processor's load, 0 to 1."""

    enabled: int
    healthy: int
    load_ratio: float


@dataclass(frozen=True, kw_only=True)
class Text:
    """A STATUSTEXT: 0 is an emergency, 7 for debugging."""

    severity: int
    text: str


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """What came.

    Attributes:
        waited_s: From the first call to the controller's first heartbeat, or to giving up.
        listened_s: From that heartbeat on; streams are counted then.
        beat: The controller's last heartbeat; None: there was none.
        others: One heartbeat of every other sender.
        has_echo: Whether hilsim's own heartbeats came back.
        streams: By id.
        received_bytes: All that came.
        skipped_bytes: Those that belong to no frame.
        frames: Frames that came.
        sample: The first bytes.
        health: The last; None: none came.
        estimator_flags: ESTIMATOR_STATUS.flags, the last; None: none came.
        texts: Each once, in order.
        asked: Names of parameters that were asked for.
        parameters: Their values, of those that were answered.
    """

    waited_s: float = 0.0
    listened_s: float = 0.0
    beat: Beat | None = None
    others: tuple[Beat, ...] = ()
    has_echo: bool = False
    streams: tuple[Stream, ...] = ()
    received_bytes: int = 0
    skipped_bytes: int = 0
    frames: int = 0
    sample: bytes = b""
    health: Health | None = None
    estimator_flags: int | None = None
    texts: tuple[Text, ...] = ()
    asked: tuple[str, ...] = ()
    parameters: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def rate_hz(self, message_id: int) -> float:
        """How often a message came."""
        return sum(stream.frames for stream in self.streams if stream.id == message_id) / self.listened_s if self.listened_s else 0.0

    @property
    def streamed_bytes_per_s(self) -> float:
        """What all streams took."""
        return sum(stream.bytes for stream in self.streams) / self.listened_s if self.listened_s else 0.0
