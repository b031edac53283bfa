"""Forwarding of unchanged frames between the controller's link and ground stations, in both directions.

The nogil loop puts the controller's frames onto one packet queue and takes frames for the controller off another; it never waits for this side. Here, on the event loop, each
frame of the controller is sent to every station, a burst at a rate that programs can read (a UDP socket holds some 280 frames by default), and frames of the stations are put onto the second queue, one of each peer in turn, so that a flooding peer fills only its own
queue. Frames between stations are not forwarded.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import numpy as np

from hilsim.errors import require
from hilsim.parts.vehicle.ground_stations.endpoints import Protocol, StationCounters, StationSpec
from hilsim.parts.vehicle.ground_stations.tcp import TcpStation
from hilsim.parts.vehicle.ground_stations.udp import UdpStation
from hilsim.transmit.packet_queue import PacketQueue, put, take, waiting

Listener = Callable[[int, bytes, int], None]
"""Called with the message id, the whole frame, and the rig time of its arrival."""
Taker = Callable[[bytes], bool]
"""Takes a frame of a ground station that hilsim carries out itself; False: it is forwarded."""

_FRAMES_A_TURN = 64
_BURST_BYTES_PER_S = 500_000.0
"""Rate at which frames go to stations while more than a turn's wait; PX4's telemetry has less than a fifth of it, and a log comes in bursts of any size."""
_LOOK_AGAIN_S = 0.004


class Forwarder:
    """Forwarder between controller and stations, yielded by ``forward``.

    Attributes:
        stations: Ports for ground stations.
        taker: Takes frames of the stations that are not forwarded; None: all are.
    """

    def __init__(
        self,
        from_controller: PacketQueue,
        to_controller: PacketQueue,
        descriptors: tuple[int, int],
        specs: Sequence[StationSpec],
        listener: Listener | None,
    ) -> None:
        self._listener = listener
        self.taker: Taker | None = None
        self._from_controller = from_controller
        self._to_controller = to_controller
        self._arrival_descriptor, self._link_descriptor = descriptors
        self._loop = asyncio.get_running_loop()
        self._again: asyncio.Handle | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._turn = 0
        self.stations: list[UdpStation | TcpStation] = []
        try:
            for spec in specs:
                kind = UdpStation if spec.protocol is Protocol.UDP else TcpStation
                self.stations.append(kind(spec, self._pump))
        except BaseException:
            self._close_stations()
            raise
        self._loop.add_reader(self._arrival_descriptor, self._deliver)

    def readings(self) -> tuple[StationCounters, ...]:
        """Snapshot of the counters, one row per ground station, in configuration order."""
        return tuple(station.reading() for station in self.stations)

    def answer(self, frame: bytes) -> None:
        """Send a frame that the controller did not make to all stations."""
        for station in self.stations:
            station.deliver(frame)

    def tell_truth(self, frame: bytes) -> None:
        """Send a frame of hilsim's own to the stations configured to receive the truth; it is not sent to the controller."""
        for station in self.stations:
            if station.spec.truth:
                station.deliver(frame)

    def discard(self) -> int:
        """Discard the stations' frames that were not yet put onto the packet queue, for example when the link is reopened; returns their number."""
        count = 0
        for station in self.stations:
            for peer in station.peers:
                station.counters.dropped_from_station += len(peer.incoming)
                count += len(peer.incoming)
                peer.incoming.clear()
        self._resume()
        return count

    def close(self) -> None:
        """Close every station's port."""
        for timer in (self._again, self._pause):
            if timer is not None:
                timer.cancel()
        self._loop.remove_reader(self._arrival_descriptor)
        self._close_stations()

    def _close_stations(self) -> None:
        for station in self.stations:
            station.close()

    def _deliver(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._arrival_descriptor)
        if self._pause is not None:
            return
        taken = take(self._from_controller, _FRAMES_A_TURN)
        for row, (size, message_id, came_ns) in enumerate(zip(taken.size.tolist(), taken.flow.tolist(), taken.time_ns.tolist(), strict=True)):
            frame = taken.payload[row, :size].tobytes()
            if self._listener is not None:
                self._listener(message_id, frame, came_ns)
            for station in self.stations:
                if message_id not in station.spec.withhold:
                    station.deliver(frame)
        if waiting(self._from_controller) > 0:
            self._pause = self._loop.call_later(int(taken.size.sum()) / _BURST_BYTES_PER_S, self._deliver_on)

    def _deliver_on(self) -> None:
        self._pause = None
        self._deliver()

    def _pump(self) -> None:
        """Move frames of the stations onto the packet queue while it has room; otherwise retry later."""
        room = len(self._to_controller.size) - int(waiting(self._to_controller))
        queues = [(row, peer.incoming) for row, station in enumerate(self.stations) for peer in station.peers if peer.incoming]
        is_moved = False
        while room > 0 and queues:
            self._turn = (self._turn + 1) % len(queues)  # continue after the last peer served, for fairness
            row, queue = queues[self._turn]
            frame = queue.popleft()
            if self.taker is None or not self.taker(frame):
                put(self._to_controller, row, time.monotonic_ns(), 0, np.frombuffer(frame, np.uint8), len(frame))
                room -= 1
            is_moved = True
            if not queue:
                del queues[self._turn]
        if is_moved:
            self._resume()
            if self._link_descriptor >= 0:
                os.eventfd_write(self._link_descriptor, 1)
        if queues and self._again is None:
            self._again = self._loop.call_later(_LOOK_AGAIN_S, self._look_again)

    def _look_again(self) -> None:
        self._again = None
        self._pump()

    def _resume(self) -> None:
        for station in self.stations:
            if isinstance(station, TcpStation):
                station.resume()


@asynccontextmanager
async def forward(
    specs: Sequence[StationSpec],
    *,
    from_controller: PacketQueue,
    to_controller: PacketQueue,
    arrival_descriptor: int,
    link_descriptor: int = -1,
    listener: Listener | None = None,
) -> AsyncIterator[Forwarder]:
    """Forward frames while the block runs; leaving it closes everything.

    Args:
        specs: Specifications of the stations, with unique names.
        from_controller: Packet queue of frames from ``wire.pass_on``; this is its consumer.
        to_controller: Packet queue of frames for ``outbox.flush``; this is its producer. With a short queue (8 slots), frames wait in the peers' own queues.
        arrival_descriptor: Non-blocking eventfd that the nogil loop writes after ``pass_on``.
        link_descriptor: Eventfd that the nogil loop waits on, written when a frame is queued for it; -1 for none.
        listener: Called with every frame of the controller.

    Raises:
        LinkError: a port cannot be opened.
        ValueError: two stations have the same name.
    """
    names = [spec.name for spec in specs]
    require((len(set(names)) == len(names), f"names of ground stations must differ, got {', '.join(names)}"))
    forwarder = Forwarder(from_controller, to_controller, (arrival_descriptor, link_descriptor), specs, listener)
    try:
        yield forwarder
    finally:
        forwarder.close()
