"""Scans of the sensors that send to a UDP port of this host."""

import asyncio
import threading
from contextlib import suppress

from hilsim.api.packet import packet_of
from hilsim.capture.batches import gathered
from hilsim.capture.live import Listener
from hilsim.capture.sensor_names import SensorNames
from hilsim.read.scans.streams import SensorStreams
from hilsim.show.view.feed.packets import LatestPackets
from hilsim.show.view.feed.store import ScanStore
from hilsim.show.view.feed.streams import StoredFeed

_BATCH_S = 0.02
"""Time for which datagrams gather in the kernel's buffer: decoding many at once is cheaper."""


class ListenFeed(StoredFeed):
    """Datagrams of a UDP port as a feed; sensors are named by their source addresses.

    Attributes:
        title: ``HOST:PORT``.
        port: Port in use; it differs where port 0 (any) was requested.
        dropped: Datagrams that the kernel dropped, because they were not read in time.
    """

    def __init__(self, host: str, port: int, *, seconds: float = 10.0, most_bytes: int = 256_000_000, with_packets: bool = False) -> None:
        """Open the port, and start to listen.

        Args:
            host: Address to bind: an interface's, ``0.0.0.0`` for all and for broadcasts, or a multicast group.
            port: UDP port.
            seconds: Time for which scans are stored.
            most_bytes: Most memory of stored scans.
            with_packets: Whether packets are stored for ``packets``; a socket gives no headers.

        Raises:
            CaptureError: the port is in use or not permitted, or the address is not this machine's.
            ValueError: an argument is out of bounds.
        """
        self._packets = LatestPackets() if with_packets else None
        self._store = ScanStore(seconds=seconds, most_bytes=most_bytes)
        self._streams = SensorStreams(self._store.add, self._store.add_sensor)
        self._names = SensorNames()
        self._listener = Listener(host=host, ports=(port,))
        self._loop = asyncio.new_event_loop()
        self._is_closed = False
        try:
            self._loop.run_until_complete(self._listener.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        (self.port,) = self._listener.bound_ports()
        self.title = f"{host}:{self.port}"
        self._task = self._loop.create_task(self._listen(), name="view-listen")
        self._thread = threading.Thread(target=self._run, name="view-listen", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Datagrams that the kernel dropped."""
        return self._listener.dropped

    def status(self) -> None:
        """A port has none."""
        return

    def close(self) -> None:
        """Close the port, and end the thread."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join(5.0)

    def _run(self) -> None:
        try:
            with suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._task)
            self._loop.run_until_complete(self._listener.__aexit__(None, None, None))
        finally:
            self._loop.close()

    async def _listen(self) -> None:
        async for datagrams in self._listener.batches():
            if self._packets is not None:
                self._packets.add(packet_of(datagram, self._names) for datagram in datagrams)
            batch = gathered(datagrams)
            for name, rows in self._names.rows(batch):
                self._streams.add(name, batch, rows)
            await asyncio.sleep(_BATCH_S)
