"""Result of probing a flight controller at a port: input of a diagnosis."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from hilsim.protocols.mavlink.messages import ARMED_FLAG, HIL_FLAG
from hilsim.transmit.links.line import Line

PX4, ARDUPILOT, NO_AUTOPILOT = 12, 3, 8
"""MAV_AUTOPILOT values; the last is sent by devices other than flight controllers."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """Port at which a controller was probed.

    Attributes:
        path: Path as given.
        device: Current device, or the peer of a network link.
        lasting_name: Constant name for finding it again after replugging; ``path`` if there is no better name.
        line: Line that carries its bytes.
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
        """Whether its HIL flag is set."""
        return bool(self.base_mode & HIL_FLAG)


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Statistics of one kind of message.

    Attributes:
        id: Message id.
        frames: Number of frames received.
        bytes: Bytes of these frames.
    """

    id: int
    frames: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Health:
    """SYS_STATUS: bits of the enabled sensors and of the healthy ones, and the processor's load, 0 to 1."""

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
    """Result of a probe.

    Attributes:
        waited_s: Time from the start to the controller's first heartbeat, or to the timeout.
        listened_s: Time from that heartbeat; streams are counted in it.
        beat: Latest heartbeat of the controller; None if there was none.
        others: One heartbeat of each other sender.
        has_echo: Whether hilsim's own heartbeats were received.
        streams: Statistics by message id.
        received_bytes: Number of bytes received.
        skipped_bytes: Number of bytes that belong to no frame.
        frames: Number of frames received.
        sample: First bytes received.
        health: Latest SYS_STATUS; None if none was received.
        estimator_flags: Latest ESTIMATOR_STATUS.flags; None if none was received.
        texts: Texts, each once, in order.
        asked: Names of requested parameters.
        parameters: Values of the answered parameters.
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
        """Rate of a message."""
        return sum(stream.frames for stream in self.streams if stream.id == message_id) / self.listened_s if self.listened_s else 0.0

    @property
    def streamed_bytes_per_s(self) -> float:
        """Data rate of all streams."""
        return sum(stream.bytes for stream in self.streams) / self.listened_s if self.listened_s else 0.0
