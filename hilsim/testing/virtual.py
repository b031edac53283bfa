"""A lidar for a driver's tests without a clock: its packets are rendered on request, as fast as possible, and are always the same."""

import socket
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilsim.api.emulator import Emulator
from hilsim.api.packet import Packet
from hilsim.capture.pcap import PcapWriter
from hilsim.config.rig import Rig, rig_of_table, with_faults, without_faults
from hilsim.errors import TransmitError, require
from hilsim.offline.epoch import START_UTC, utc_ns
from hilsim.testing.receivers import Waiting, waiting_at
from hilsim.testing.sensor_rig import SensorRig

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MAX_WAITING_BYTES = 32_768
"""Limit of queued bytes, as the kernel counts its buffers: some fourteen packets, a sixth of a socket's default."""
_POLL_S = 0.0002
_STEP_NS = 100_000_000
_KEPT_PACKETS = 50_000
_DATA = ("data", "points")


class VirtualLidar:
    """A sensor whose time advances as its packets are taken.

    Attributes:
        model: Profile of the sensor.
        name: Name of the sensor.
        address: Source IPv4 address of its packets.
        host: Destination IPv4 address.
        port: Destination UDP port of data packets.
        position_port: Destination UDP port of position packets; None for a model without one.
        recording: Path to which ``report`` writes the packets taken; None for no recording.
    """

    def __init__(self, rig: SensorRig, recording: Path | None) -> None:
        """Build the sensor of a rig with one sensor.

        Raises:
            ConfigError: the rig is invalid.
        """
        self.emulator = Emulator(rig_of_table(rig.table, rig.path))
        sensor = rig.table["sensor"][0]
        self.model, self.name = str(sensor["profile"]), str(sensor["name"])
        network = sensor["network"]
        self.address, self.host = str(network["source"]), str(network["destination"])
        self.port: int = network["data_port"]
        self.position_port: int | None = network.get("position_port")
        self.recording = recording
        self._stream = self._all(0)
        self._ahead: Packet | None = None
        self._now_ns = self._next_ns = 0
        self._taken: deque[Packet] = deque(maxlen=_KEPT_PACKETS)

    @property
    def time_s(self) -> float:
        """Rig time up to which packets were taken."""
        return self._now_ns / 1e9

    @property
    def recorded(self) -> tuple[Path, ...]:
        """PCAP file of the packets taken, after ``report``."""
        return (self.recording,) if self.recording is not None and self.recording.exists() else ()

    def packets(self, duration_s: float) -> Iterator[Packet]:
        """Yield the packets of the next interval of rig time, of all kinds, in the order of their deadlines.

        Raises:
            AssetError: a file of the scene cannot be used.
        """
        require((duration_s > 0.0, f"duration_s must be above 0, got {duration_s}"))
        stop_ns = self._now_ns + round(duration_s * 1e9)
        while (packet := self._following()).time_ns < stop_ns:
            yield self._take(packet)
        self._ahead, self._now_ns, self._next_ns = packet, stop_ns, stop_ns

    def receive(self, packets: int = 1) -> list[bytes]:
        """Next data packets; position packets in between are skipped.

        Raises:
            AssetError: a file of the scene cannot be used.
        """
        taken: list[bytes] = []
        while len(taken) < packets:
            packet = self._take(self._following())
            if packet.destination[1] == self.port and packet.stream in _DATA:
                taken.append(packet.payload)
        return taken

    def points(self, packets: int) -> "npt.NDArray[np.void]":
        """Points of the next data packets, as from ``hilsim.decode``: the expected result of a driver under test.

        Args:
            packets: Number of packets; a VLP-16 at 600 rpm takes 76 for a turn.
        """
        from hilsim.api.decoding import decode  # noqa: PLC0415 - not every test decodes

        return decode(self.receive(packets))

    def truth(self, start_s: float, stop_s: float) -> "npt.NDArray[np.void]":
        """True points of the sensor in an interval of rig time, independent of the packets taken: ``Emulator.points``, with label and instance.

        Raises:
            ValueError: the times are not in order.
        """
        return self.emulator.points(start_s, stop_s)

    def fault(self, kind: str, **keys: Any) -> None:
        """Break the sensor on command ([faults](../reference/faults.md)), from now on.

        Raises:
            ConfigError: the fault is invalid, or the sensor has nothing that it befalls.
        """
        self._go_on(with_faults(self.emulator.rig, [{"kind": kind, "on": self.name, "at_s": self.time_s, **keys}]))

    def clear(self, name: str = "*") -> None:
        """End its faults of a name or kind, by default all, from now on."""
        self._go_on(without_faults(self.emulator.rig, name))

    def _go_on(self, rig: Rig) -> None:
        """Go on with another rig."""
        self._stream.close()
        self.emulator, self._ahead = Emulator(rig), None
        self._stream = self._all(self._next_ns)

    def send(self, duration_s: float, *, timeout_s: float = 10.0) -> int:
        """Send the packets of the next interval of rig time to the receiver at the port, as fast as it reads them.

        Position packets are sent if their port is bound too. The number in transit is limited to a small buffer; a packet that is lost nevertheless is an error.

        Args:
            duration_s: Duration in rig time.
            timeout_s: Timeout for a receiver that does not read, or has not bound the port yet.

        Returns:
            Number of packets sent, after all of them have been read.

        Raises:
            TransmitError: no receiver has bound the port, no receiver reads, or the kernel has dropped a packet because the receiver's buffer is smaller than 32 KiB.
        """
        self._await(self.port, timeout_s, lambda found: found.sockets > 0, "must be bound by a receiver on this host")
        ports = {port for port in (self.port, self.position_port) if port is not None and waiting_at(self.host, port).sockets}
        dropped, sent = {port: waiting_at(self.host, port).drops for port in ports}, 0
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sending:
            sending.bind((self.address, 0))
            for packet in self.packets(duration_s):
                if packet.destination[1] in ports:
                    self._await(packet.destination[1], timeout_s, lambda found: found.most_bytes < _MAX_WAITING_BYTES, "must be read")
                    sending.sendto(packet.payload, packet.destination)
                    sent += 1
        for port in ports:
            self._await(port, timeout_s, lambda found: found.most_bytes == 0, "must be read")
            lost = waiting_at(self.host, port).drops - dropped[port]
            if lost > 0:
                raise TransmitError(
                    f"the receiver at {self.host}:{port} must have a buffer of 32 KiB or more (SO_RCVBUF), got {lost} packets dropped at it"
                )
        return sent

    def report(self) -> str:
        """Report for a failed test: destination, and the packets taken, which are written to ``recording``."""
        lines = [f"{self.model} {self.name}: {self.address} to {self.host}:{self.port}, without a clock", f"rig time: {self.time_s:.6f} s"]
        if self.recording is not None:
            epoch_ns = utc_ns(START_UTC)
            with PcapWriter(self.recording) as writer:
                for packet in self._taken:
                    writer.write(epoch_ns + packet.time_ns, packet.frame)
            lines.append(f"sent: {self.recording}")
        return "\n".join(lines)

    def close(self) -> None:
        """Stop rendering ahead."""
        self._stream.close()

    def _all(self, from_ns: int) -> Generator[Packet, None, None]:
        for step in count(from_ns // _STEP_NS):
            for packet in self.emulator.packets(step * _STEP_NS / 1e9, (step + 1) * _STEP_NS / 1e9):
                if packet.time_ns >= from_ns:
                    yield packet

    def _following(self) -> Packet:
        packet, self._ahead = self._ahead or next(self._stream), None
        return packet

    def _take(self, packet: Packet) -> Packet:
        self._now_ns, self._next_ns = packet.time_ns, packet.time_ns + 1
        if self.recording is not None:
            self._taken.append(packet)
        return packet

    def _await(self, port: int, timeout_s: float, is_so: Callable[[Waiting], bool], rule: str) -> None:
        until_s = time.monotonic() + timeout_s
        while not is_so(waiting_at(self.host, port)):
            if time.monotonic() >= until_s:
                raise TransmitError(f"port {port} of {self.host} {rule} within {timeout_s:g} s, got no such receiver")
            time.sleep(_POLL_S)
