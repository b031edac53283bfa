"""Which serial port, and how fast: the keys, rules and default of whoever opens one. Imports nothing slow."""

from collections.abc import Iterator
from dataclasses import dataclass

from hilsim.errors import require

DEFAULT_BAUD = 921_600
LEAST_BAUD, MOST_BAUD = 1200, 12_000_000
"""Of USB adapters: pyserial sets rates without a constant too."""


def port_rule(port: str) -> tuple[bool, str]:
    """A serial port is named by its device."""
    return port.startswith("/"), f'port must be absolute, such as "/dev/serial/by-id/usb-…", got "{port}"'


def baud_rule(baud: int) -> tuple[bool, str]:
    """A rate that a serial port can have."""
    return LEAST_BAUD <= baud <= MOST_BAUD, f"baud must be {LEAST_BAUD} to {MOST_BAUD}, got {baud}"


@dataclass(frozen=True, kw_only=True)
class SerialSpec:
    """A serial port.

    Attributes:
        port: The serial device, best by its name under /dev/serial/by-id, which stays the same when it is plugged in again.
        baud: Bits per second, 8N1; on USB devices a number without effect.
    """

    port: str
    baud: int = DEFAULT_BAUD

    def __post_init__(self) -> None:
        require(*self.rules())

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Every rule with its fault."""
        yield port_rule(self.port)
        yield baud_rule(self.baud)
