"""Packets of a feed for a reader that takes them as they come."""

import socket
import threading
from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from hilsim.api.packet import Packet, stream_of
from hilsim.capture.batches import DatagramArrays

_MAX_WAITING = 8192
"""Packets that wait, 10 MB of a Velodyne's: half a second of twenty sensors, and a reader takes them every few milliseconds."""
_SOURCE, _DESTINATION, _PORTS = 16, 12, 8
"""Places of the addresses and ports before a payload."""


class LatestPackets:
    """Packets that have not been taken yet; the oldest are removed where too many wait. Any thread may add and take.

    Attributes:
        dropped: Packets that were removed before they were taken.
    """

    def __init__(self) -> None:
        """Create a store without packets."""
        self.dropped = 0
        self._waiting: deque[Packet] = deque(maxlen=_MAX_WAITING)
        self._changing = threading.Lock()

    def add(self, packets: Iterable[Packet]) -> None:
        """Add packets."""
        with self._changing:
            for packet in packets:
                self.dropped += len(self._waiting) == _MAX_WAITING
                self._waiting.append(packet)

    def add_rows(self, sensor: str, batch: DatagramArrays, rows: npt.NDArray[np.intp]) -> None:
        """Add some datagrams of a batch; those without headers are left out, because their destination is not known."""
        if batch.header_size:
            self.add(_packet(sensor, batch, row) for row in rows.tolist())

    def take(self) -> Sequence[Packet]:
        """Packets since the last call, in the order of their stamps."""
        with self._changing:
            taken = sorted(self._waiting, key=lambda packet: packet.time_ns)
            self._waiting.clear()
        return taken


def _packet(sensor: str, batch: DatagramArrays, row: int) -> Packet:
    start = int(batch.start[row])
    headers = batch.data[start - batch.header_size : start].tobytes()
    payload = batch.data[start : start + int(batch.size[row])].tobytes()
    source_port, destination_port = headers[-_PORTS : -_PORTS + 2], headers[-_PORTS + 2 : -_PORTS + 4]
    return Packet(
        time_ns=int(batch.host_stamp_ns[row]),
        sensor=sensor,
        stream=stream_of(payload),
        source=(socket.inet_ntoa(headers[-_SOURCE : -_SOURCE + 4]), int.from_bytes(source_port, "big")),
        destination=(socket.inet_ntoa(headers[-_DESTINATION : -_DESTINATION + 4]), int.from_bytes(destination_port, "big")),
        payload=payload,
        headers=headers,
    )
