"""A packet of an emulator or a capture."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.pcap import CaptureFile
from hilsim.capture.sensor_names import SensorNames
from hilsim.protocols.recognise import recognise

Address = tuple[str, int]
"""IPv4 address and UDP port, as for sockets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """One UDP datagram of a sensor.

    Attributes:
        time_ns: Deadline in nanoseconds of rig time; for a packet of a capture the capture time in nanoseconds since 1970-01-01 UTC by that host's clock.
        sensor: Name of the sensor or replay in the rig; for a packet of a capture the source address; of a further sensor behind
            that address, the address and the destination port.
        stream: Stream of the sensor: ``"data"`` and ``"position"`` for a Velodyne, ``"points"`` and ``"info"`` for a Cepton-style sensor, ``"lidar"`` and
            ``"imu"`` for an Ouster sensor, the recorded addresses for a replay in a rig, also ``"other"`` for a capture.
        source: Source address and port.
        destination: Destination address and port, as for ``socket.sendto``.
        payload: UDP payload.
        headers: Ethernet, IPv4 and UDP headers; empty if a capture does not contain them.
    """

    time_ns: int
    sensor: str
    stream: str
    source: Address
    destination: Address
    payload: bytes
    headers: bytes = b""

    @property
    def frame(self) -> bytes:
        """Whole Ethernet frame; empty if the headers are unknown."""
        return self.headers + self.payload if self.headers else b""


def read_capture(path: str | Path) -> Iterator[Packet]:
    """Yield the UDP datagrams of a capture (PCAP or PCAPNG; plain, gzip or zstd) in file order.

    Args:
        path: Path of the capture.

    Raises:
        CaptureError: the file cannot be opened or is not a capture; raised at the first packet.
    """
    yield from captured_packets(Path(path))


def captured_packets(path: Path, chosen: str = "", note: Callable[[str], object] = lambda _: None) -> Iterator[Packet]:
    """Yield the UDP datagrams of a capture as ``read_capture`` does, for a user who has chosen a sensor (``SensorNames``); ``note`` takes the reader's notes."""
    names, file = SensorNames(chosen), CaptureFile(path)
    for datagram in names.ahead(file):
        yield packet_of(datagram, names)
    for line in file.notes.lines():
        note(line)


def packet_of(datagram: CapturedDatagram, names: SensorNames) -> Packet:
    """Convert the next captured datagram of a stream."""
    return Packet(
        time_ns=datagram.host_stamp_ns,
        sensor=names.of(datagram),
        stream=stream_of(datagram.payload),
        source=(datagram.source, datagram.source_port),
        destination=(datagram.destination, datagram.destination_port),
        payload=datagram.payload,
        headers=datagram.link or b"" if datagram.is_ethernet else b"",
    )


def stream_of(payload: bytes) -> str:
    """Stream of a captured packet, by its contents."""
    return recognise(payload).facts.stream


def datagrams_of(packets: Iterable[Packet]) -> Iterator[CapturedDatagram]:
    """Convert packets to the form of capture readers."""
    for number, packet in enumerate(packets, start=1):
        yield CapturedDatagram(
            packet.time_ns, *packet.source, *packet.destination, packet.payload, packet.headers or None, bool(packet.headers), number
        )
