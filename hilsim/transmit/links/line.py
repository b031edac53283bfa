"""Serial ports in a rig, and the lines that carry the bytes of a link. Imports nothing slow."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NamedTuple

from hilsim.errors import require

DEFAULT_BAUD = 921_600
MIN_BAUD, MAX_BAUD = 1200, 12_000_000
"""Range of baud rates of USB adapters; pyserial also sets rates without a constant."""
BITS_PER_BYTE = 10
"""Bits per byte with 8N1."""


@dataclass(frozen=True, kw_only=True)
class SerialSpec:
    """A serial port.

    Attributes:
        port: Serial device, preferably by its name under /dev/serial/by-id, which does not change on replugging.
        baud: Bits per second, 8N1; without effect on USB devices.
    """

    port: str
    baud: int = DEFAULT_BAUD
    needs_port: ClassVar[bool] = True
    """False where the port is optional, because other connections exist."""

    def __post_init__(self) -> None:
        require(*self.rules())

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        has_port = bool(self.port) or self.needs_port
        yield not has_port or self.port.startswith("/"), f'port must be absolute, such as "/dev/serial/by-id/usb-…", got "{self.port}"'
        yield MIN_BAUD <= self.baud <= MAX_BAUD, f"baud must be {MIN_BAUD} to {MAX_BAUD}, got {self.baud}"


class LineKind(StrEnum):
    """Meaning of a line's rate."""

    UART = "uart"
    USB = "usb"
    NETWORK = "network"


class Line(NamedTuple):
    """Physical line between the two ends of a link.

    Attributes:
        kind: Kind of the line; only a UART has a rate limit.
        baud: Bits per second of a serial port; without effect on USB.
    """

    kind: LineKind
    baud: int = 0

    @property
    def bytes_per_s(self) -> float | None:
        """Capacity in each direction; None for no limit."""
        return self.baud / BITS_PER_BYTE if self.kind is LineKind.UART else None


NETWORK = Line(LineKind.NETWORK)
