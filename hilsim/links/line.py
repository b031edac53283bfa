"""Serial ports as a rig names them, and what carries the bytes of a link. Imports nothing slow."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NamedTuple

from hilsim.errors import require

DEFAULT_BAUD = 921_600
LEAST_BAUD, MOST_BAUD = 1200, 12_000_000
"""Of USB adapters: pyserial sets rates without a constant too."""
BITS_PER_BYTE = 10
"""A byte of 8N1."""


@dataclass(frozen=True, kw_only=True)
class SerialSpec:
    """A serial port.

    Attributes:
        port: The serial device, best by its name under /dev/serial/by-id, which stays the same when it is plugged in again.
        baud: Bits per second, 8N1; on USB devices a number without effect.
    """

    port: str
    baud: int = DEFAULT_BAUD
    needs_port: ClassVar[bool] = True
    """False where a port may be left out, because there are other ways to be connected."""

    def __post_init__(self) -> None:
        require(*self.rules())

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Every rule with its fault."""
        has_port = bool(self.port) or self.needs_port
        yield not has_port or self.port.startswith("/"), f'port must be absolute, such as "/dev/serial/by-id/usb-…", got "{self.port}"'
        yield LEAST_BAUD <= self.baud <= MOST_BAUD, f"baud must be {LEAST_BAUD} to {MOST_BAUD}, got {self.baud}"


class LineKind(StrEnum):
    """What a line's rate means."""

    UART = "uart"
    USB = "usb"
    NETWORK = "network"


class Line(NamedTuple):
    """What is between the two ends of a link.

    Attributes:
        kind: Only a UART has a rate of its own.
        baud: Of a serial port, in bits per second; on USB a number without effect.
    """

    kind: LineKind
    baud: int = 0

    @property
    def bytes_per_s(self) -> float | None:
        """What it carries each way; None where it has no rate of its own."""
        return self.baud / BITS_PER_BYTE if self.kind is LineKind.UART else None


NETWORK = Line(LineKind.NETWORK)
