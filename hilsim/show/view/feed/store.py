"""Scans and packets of a feed that are still stored, in bounded memory."""

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.errors import require
from hilsim.read.scans.scan import Scan, ScanPackets


class _Stored(NamedTuple):
    scan: Scan
    packets: ScanPackets
    size_bytes: int


class ScanStore:
    """Latest scans of every sensor; any thread may read and write."""

    def __init__(self, *, seconds: float, most_bytes: int) -> None:
        """Create a store without scans.

        Args:
            seconds: Time by which a scan may be older than the newest one of its sensor.
            most_bytes: Most memory of points and packets of all sensors together; the oldest scans are removed.

        Raises:
            ValueError: an argument is out of bounds.
        """
        require(
            (0.1 <= seconds <= 3600.0, f"seconds must be 0.1 to 3600, got {seconds}"),
            (1_000_000 <= most_bytes <= 1 << 36, f"most_bytes must be 1000000 to {1 << 36}, got {most_bytes}"),
        )
        self._most_ns, self._most_bytes = round(seconds * 1e9), most_bytes
        self._stored: dict[str, deque[_Stored]] = {}
        self._changing = threading.Lock()
        self._bytes = 0

    @property
    def used_bytes(self) -> int:
        """Memory of the stored points and packets."""
        return self._bytes

    def add_sensor(self, sensor: str) -> None:
        """Make a sensor known before its first scan."""
        with self._changing:
            self._stored.setdefault(sensor, deque())

    def sensors(self) -> tuple[str, ...]:
        """Names of the sensors in the order of their coming."""
        return tuple(self._stored)

    def add(self, scan: Scan, packets: ScanPackets) -> None:
        """Store the next scan of a sensor, and remove what is too old or too much."""
        size = scan.points.nbytes + sum(map(len, packets.payloads))
        with self._changing:
            mine = self._stored.setdefault(scan.sensor, deque())
            mine.append(_Stored(scan, packets, size))
            self._bytes += size
            while len(mine) > 1 and mine[0].scan.stamp_ns < scan.stamp_ns - self._most_ns:
                self._bytes -= mine.popleft().size_bytes
            while self._bytes > self._most_bytes and (oldest := self._oldest()) is not None:
                self._bytes -= oldest.popleft().size_bytes

    def since(self, sensor: str, number: int) -> Sequence[Scan]:
        """Stored scans of a sensor from ``number`` on, oldest first."""
        with self._changing:
            return [stored.scan for stored in self._stored.get(sensor, ()) if stored.scan.number >= number]

    def packets(self, scan: Scan) -> ScanPackets | None:
        """Packets of a scan; None if they are not stored any more."""
        with self._changing:
            return next((stored.packets for stored in self._stored.get(scan.sensor, ()) if stored.scan.number == scan.number), None)

    def forget(self) -> None:
        """Remove all scans, but not the sensors."""
        with self._changing:
            for mine in self._stored.values():
                mine.clear()
            self._bytes = 0

    def _oldest(self) -> deque[_Stored] | None:
        """Scans of the sensor with the oldest one, among those with more than one."""
        several = [mine for mine in self._stored.values() if len(mine) > 1]
        return min(several, key=lambda mine: mine[0].scan.stamp_ns, default=None)


def with_origins(scan: Scan, instance: npt.NDArray[np.int32], label: npt.NDArray[np.int16]) -> Scan:
    """Scan with the object of each point."""
    return replace(scan, instance=instance, label=label)
