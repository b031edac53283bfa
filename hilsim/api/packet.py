"""A packet, wherever it is from."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.pcap import CaptureFile
from hilsim.protocols.recognise import PacketKind, recognise

Address = tuple[str, int]
"""IPv4 address and UDP port, as sockets take them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """One UDP datagram of a sensor.

    Attributes:
        time_ns: When it is due, in nanoseconds of rig time; of a capture's: when it was captured, in nanoseconds since 1970-01-01 UTC by that host's clock.
        sensor: Which sensor (or replay) of the rig it is of; of a capture's: the address it came from.
        stream: Which of its streams: ``"data"`` and ``"position"`` of a Velodyne, ``"points"`` and ``"info"`` of a Cepton-style sensor;
            of a replay in a rig the recorded addresses; of a capture's also ``"other"``.
        source: Address and port it comes from.
        destination: Address and port it goes to, as ``socket.sendto`` takes them.
        payload: The UDP payload.
        headers: Its Ethernet, IPv4 and UDP headers; empty where a capture does not show them.
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
        """The whole Ethernet frame; empty where its headers are not known."""
        return self.headers + self.payload if self.headers else b""


_STREAMS = {
    PacketKind.VELODYNE_DATA: "data",
    PacketKind.VELODYNE_POSITION: "position",
    PacketKind.CEPTON_STDV: "points",
    PacketKind.CEPTON_INFO: "info",
    PacketKind.CEPTON_INFZ: "info",
}


def read_capture(path: str | Path) -> Iterator[Packet]:
    """Yield the UDP datagrams of a capture (PCAP or PCAPNG; plain, gzip or zstd) in file order.

    Args:
        path: The file.

    Raises:
        CaptureError: the file cannot be opened or is no capture, when the first packet is asked for.
    """
    for datagram in CaptureFile(Path(path)):
        yield Packet(
            time_ns=datagram.host_stamp_ns,
            sensor=datagram.source,
            stream=_STREAMS.get(recognise(datagram.payload), "other"),
            source=(datagram.source, datagram.source_port),
            destination=(datagram.destination, datagram.destination_port),
            payload=datagram.payload,
            headers=datagram.link or b"" if datagram.is_ethernet else b"",
        )


def datagrams_of(packets: Iterable[Packet]) -> Iterator[CapturedDatagram]:
    """Packets as readers of captures take them."""
    for number, packet in enumerate(packets, start=1):
        yield CapturedDatagram(
            packet.time_ns, *packet.source, *packet.destination, packet.payload, packet.headers or None, bool(packet.headers), number
        )
