"""Identity of a flow of datagrams: the addresses and ports of its headers."""

from typing import NamedTuple


class FlowKey(NamedTuple):
    """Source and destination of datagrams.

    Attributes:
        source: IPv4 address.
        source_port: UDP port.
        destination: IPv4 address.
        destination_port: UDP port.
    """

    source: str
    source_port: int
    destination: str
    destination_port: int

    def __str__(self) -> str:
        """Text form of the flow."""
        return f"{self.source}:{self.source_port}>{self.destination}:{self.destination_port}"
