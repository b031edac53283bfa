"""What every source of captured packets yields."""

from dataclasses import dataclass

from hilsim.protocols.flow_key import FlowKey


@dataclass(slots=True)
class CapturedDatagram:
    """One UDP datagram as it was seen.

    Not to be changed once made. It is not frozen because one is made for every packet that is read: that would take 1.4 us instead of 0.2 us.

    Attributes:
        host_stamp_ns: When the capturing host saw it, nanoseconds since 1970-01-01 UTC by that host's clock.
        source: IPv4 address it came from.
        source_port: UDP port it came from.
        destination: IPv4 address it was sent to.
        destination_port: UDP port it was sent to.
        payload: The UDP payload.
        link: The frame's bytes before the payload (link layer, IPv4 and UDP headers; the last 8 are UDP's), or None where the source of
            the datagram does not show them (a socket). Of a datagram put together from fragments: the first fragment's, with IPv4 length,
            fragment field and checksum of the whole, as the receiving host's kernel makes them.
        is_ethernet: Whether ``link`` starts with Ethernet addresses.
        frame: Number of the frame in its file, from 1 as analysers count (of the one that completed it, where it was put together from
            fragments); of the datagram for a live source.
        interface: Where it was captured: PCAPNG's number of the interface in its section, or the system's index of it from Linux cooked
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
        """Where it comes from and goes to."""
        return FlowKey(self.source, self.source_port, self.destination, self.destination_port)
