"""Detection of MAVLink on a board's USB port.

The board is silent until it has read a HEARTBEAT. It checks every 100 ms, and after more than 80 bytes without one, only every second; it needs 3 bytes, reads at most 80, and searches those
for the start of a HEARTBEAT with 9 bytes of payload (PX4-Autopilot platforms/nuttx/src/px4/common/cdc_acm_check.cpp). Other frames in these 80 bytes are lost.
"""

from dataclasses import dataclass, field

from hilsim_flight_controller.wire import V1, V2

_WINDOW = 80
_MIN_WAITING = 3
_LOOK_US = 100_000
_LOOK_AGAIN_US = 1_000_000
_HEARTBEAT_SIZE = 9
_BUFFER = 600


def has_heartbeat(window: bytes) -> bool:
    """Whether a HEARTBEAT starts in some bytes."""
    for start in range(len(window)):
        if window[start] == V1 and window[start + 1 : start + 2] == bytes([_HEARTBEAT_SIZE]) and window[start + 5 : start + 6] == b"\0":
            return True
        if window[start] == V2 and window[start + 1 : start + 2] == bytes([_HEARTBEAT_SIZE]) and window[start + 7 : start + 10] == b"\0\0\0":
            return True
    return False


@dataclass
class UsbScan:
    """A port without a listener yet."""

    waiting: bytearray = field(default_factory=bytearray)
    next_look_us: int = 0
    found: bool = False

    def feed(self, data: bytes) -> None:
        """Store received bytes; those beyond the port's buffer are lost."""
        self.waiting += data[: _BUFFER - len(self.waiting)]

    def advance(self, now_us: int) -> bool:
        """Check if it is time; returns whether MAVLink starts now."""
        if self.found or now_us < self.next_look_us:
            return False
        self.next_look_us = now_us + _LOOK_US
        if len(self.waiting) < _MIN_WAITING:
            return False
        window = bytes(self.waiting[:_WINDOW])
        del self.waiting[:_WINDOW]
        self.found = has_heartbeat(window)
        if not self.found:
            self.next_look_us = now_us + _LOOK_AGAIN_US
        return self.found
