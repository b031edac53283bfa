"""The type that every source of captured packets yields."""

from dataclasses import dataclass

from hilsim.protocols.flow_key import FlowKey


@dataclass(slots=True)
class CapturedDatagram:
    """One captured UDP datagram.

    It must not be modified. It is not a frozen dataclass, because one is made for every packet read, and that would take 1.4 us instead of 0.2 us.

    Attributes:
        host_stamp_ns: Capture time, nanoseconds since 1970-01-01 UTC by the capturing host's clock.
        source: Source IPv4 address.
        source_port: Source UDP port.
        destination: Destination IPv4 address.
        destination_port: Destination UDP port.
        payload: The UDP payload.
        link: Bytes of the frame before the payload (link layer, IPv4 and UDP headers; the last 8 are UDP's), or None if the source
            does not provide them (a socket). For a reassembled datagram: those of the first fragment, with IPv4 length,
            fragment field and checksum of the whole, as in the receiving host's kernel.
        is_ethernet: Whether ``link`` starts with Ethernet addresses.
        frame: Number of the frame in its file, from 1 as in packet analysers (for a reassembled datagram: of the last
            fragment received); number of the datagram for a live source.
        interface: Interface of the capture: PCAPNG's number of the interface in its section, or the system's index of it from Linux cooked
            headers version 2; 0 if unknown (classic PCAP, live).
    """

    host_stamp_ns: int
    source: str
    source_port: int
    destination: str
    destination_port: int
    payload: bytes
    link: bytes | None
    is_ethernet: bool
    frame: int
    interface: int = 0

    @property
    def flow(self) -> FlowKey:
        """Source and destination of the datagram."""
        return FlowKey(self.source, self.source_port, self.destination, self.destination_port)
