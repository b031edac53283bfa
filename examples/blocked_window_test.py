"""The test of a driver that is to report a blocked window: it passes only if the driver does.

    pip install '/path/to/hilsim[testing]' && pytest blocked_window_test.py

The driver here compares the share of returns in each tenth of the turn with that of its first turn. Yours is whatever diagnoses your sensor.
"""

import socket
import struct
from collections.abc import Callable
from contextlib import closing

from hilsim.testing import Lidar

TENTHS = 10


class Driver:
    """The program under test: it reads a port, and knows which tenths of the turn are blocked."""

    def __init__(self, port: int) -> None:
        self._stream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._stream.bind(("127.0.0.1", port))
        self._stream.settimeout(10.0)
        self._first = self._returns()
        self.close = self._stream.close

    def _returns(self) -> list[float]:
        """Share of firings with a return in each tenth of some turns, after those that wait in the socket."""
        seen, fired = [0] * TENTHS, [1] * TENTHS
        for packet in range(400):
            payload = self._stream.recv(2000)
            for block in range(0, 1200 if packet >= 200 else 0, 100):
                tenth = struct.unpack_from("<H", payload, block + 2)[0] * TENTHS // 36_000
                fired[tenth] += 32
                seen[tenth] += sum(any(payload[record : record + 2]) for record in range(block + 4, block + 100, 3))
        return [count / of for count, of in zip(seen, fired, strict=True)]

    def blocked(self) -> list[int]:
        """Tenths with fewer than half of their first returns."""
        return [tenth for tenth, share in enumerate(self._returns()) if share < 0.5 * self._first[tenth]]


def test_the_driver_reports_a_blocked_window_and_its_end(hilsim_lidar: Callable[..., Lidar]) -> None:
    sensor = hilsim_lidar("vlp16")
    with closing(Driver(sensor.port)) as driver:
        assert driver.blocked() == []
        sensor.fault("blocked_sector", azimuth_deg=(72.0, 144.0))
        assert driver.blocked() == [2, 3]
        sensor.clear()
        assert driver.blocked() == []
