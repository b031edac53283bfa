"""What every source of captured packets yields."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedDatagram:
    """One UDP datagram as it was seen.

    Attributes:
        host_stamp_ns: When the capturing host saw it, nanoseconds since 1970-01-01 UTC by that host's clock.
        source: IPv4 address it came from.
        source_port: UDP port it came from.
        destination: IPv4 address it was sent to.
        destination_port: UDP port it was sent to.
        payload: The UDP payload.
        link: The frame's bytes before the payload (link layer, IPv4 and UDP headers; the last 8 are UDP's), or None where the source of
            the datagram does not show them (a socket).
        is_ethernet: Whether ``link`` starts with Ethernet addresses.
        frame: Number of the frame in its file, from 1 as analysers count; of the datagram for a live source.
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
