"""The test of a driver that is to report a blocked window: it passes only if the driver does.

    pip install '/path/to/hilsim[testing]' && pytest blocked_window_test.py

The driver here compares the share of returns in each tenth of the turn with that of its first turns. Yours is whatever diagnoses your sensor.
"""

import socket
import struct
from collections.abc import Callable
from threading import Thread

from hilsim.testing import Lidar

TENTHS = 10
FEW = 0.5
"""Share of its first returns below which a tenth is blocked."""


class WatchfulDriver(Thread):
    """The program under test: it reads a port, and knows which tenths of the turn are blocked."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.blocked: set[int] = set()
        self.turns = 0
        self._first: list[float] = []
        self._stream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._stream.bind(("127.0.0.1", port))
        self._stream.settimeout(1.0)

    def run(self) -> None:
        """Read packets until the port is closed."""
        seen, fired, former = [0] * TENTHS, [1] * TENTHS, 0
        while self._stream.fileno() >= 0:
            try:
                payload = self._stream.recv(2000)
            except OSError:
                return
            for block in range(12):
                (azimuth_cdeg,) = struct.unpack_from("<H", payload, 100 * block + 2)
                if azimuth_cdeg < former:
                    self._judge([count / of for count, of in zip(seen, fired, strict=True)])
                    seen, fired = [0] * TENTHS, [1] * TENTHS
                former, tenth = azimuth_cdeg, azimuth_cdeg * TENTHS // 36_000
                fired[tenth] += 32
                seen[tenth] += sum(payload[100 * block + 4 + 3 * record : 100 * block + 6 + 3 * record] != b"\0\0" for record in range(32))

    def _judge(self, shares: list[float]) -> None:
        self.turns += 1
        if self.turns == 3:
            self._first = shares
        if self._first:
            self.blocked = {tenth for tenth in range(TENTHS) if shares[tenth] < FEW * self._first[tenth]}

    def wait_turns(self, count: int) -> None:
        """Wait for the driver to judge some turns."""
        until = self.turns + count
        while self.turns < until and self.is_alive():
            self.join(0.01)

    def close(self) -> None:
        """End it."""
        self._stream.close()
        self.join()


def test_the_driver_reports_a_blocked_window_and_its_end(hilsim_lidar: Callable[..., Lidar]) -> None:
    sensor = hilsim_lidar("vlp16")
    driver = WatchfulDriver(sensor.port)
    driver.start()
    try:
        driver.wait_turns(5)
        assert driver.blocked == set()
        sensor.fault("blocked_sector", azimuth_deg=(72.0, 144.0))
        driver.wait_turns(3)
        assert driver.blocked == {2, 3}
        sensor.clear()
        driver.wait_turns(3)
        assert driver.blocked == set()
    finally:
        driver.close()
