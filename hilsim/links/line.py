"""What carries the bytes of a link, and how many a second."""

from enum import StrEnum
from typing import NamedTuple

BITS_PER_BYTE = 10
"""A byte of 8N1."""


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
