"""Identity of a flow of datagrams: the addresses and ports of its headers."""

from typing import NamedTuple


class FlowKey(NamedTuple):
    """Source and destination of datagrams.

    Attributes:
        source: IP address.
        source_port: UDP port.
        destination: IP address.
        destination_port: UDP port.
    """

    source: str
    source_port: int
    destination: str
    destination_port: int

    def __str__(self) -> str:
        """Text form of the flow."""
        source, destination = (f"[{address}]" if ":" in address else address for address in (self.source, self.destination))
        return f"{source}:{self.source_port}>{destination}:{self.destination_port}"
