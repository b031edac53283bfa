"""The tests of a lidar driver: each gets a real stream of packets in one line, on a port of its own.

    pip install '/path/to/hilsim[testing]' && pytest driver_test.py

The driver here is ten lines. Yours is whatever reads a port: the fixture `hilsim_lidar` starts a sensor, and it is gone when the test ends.
"""

import socket
import struct
from collections.abc import Callable, Iterator

from hilsim.testing import Lidar

WALL = {"box": [{"name": "wall", "position_m": [10.5, 0.0, 0.0], "size_m": [1.0, 40.0, 20.0]}]}
"""Its face is 10 m ahead of the sensor."""


def driver(port: int, packets: int) -> Iterator[tuple[float, float]]:
    """The program under test: azimuth (deg) and range (m) of each return of some VLP-16 packets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stream:
        stream.bind(("127.0.0.1", port))
        stream.settimeout(10.0)
        for _ in range(packets):
            payload = stream.recv(2000)
            for block in range(12):
                (azimuth_cdeg,) = struct.unpack_from("<H", payload, 100 * block + 2)
                for record in range(32):
                    (raw,) = struct.unpack_from("<H", payload, 100 * block + 4 + 3 * record)
                    if raw:
                        yield azimuth_cdeg / 100.0, raw * 0.002


def test_the_driver_sees_a_wall_where_it_is(hilsim_lidar: Callable[..., Lidar]) -> None:
    sensor = hilsim_lidar("vlp16", scene=WALL)
    ranges_m = [range_m for _, range_m in driver(sensor.port, 100)]
    assert abs(min(ranges_m) - 10.0) < 0.2


def test_the_driver_reads_two_sensors_at_once(hilsim_lidar: Callable[..., Lidar]) -> None:
    first, second = hilsim_lidar("vlp16", scene=WALL), hilsim_lidar("vlp16", scene=WALL)
    assert first.port != second.port
    assert next(driver(first.port, 100))
    assert next(driver(second.port, 100))
