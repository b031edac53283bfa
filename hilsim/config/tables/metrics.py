"""Settings of the metrics server."""

from dataclasses import dataclass
from ipaddress import ip_address

from hilsim.errors import require, within

DEFAULT_PORT = 9464


@dataclass(frozen=True, kw_only=True)
class MetricsServerSpec:
    """Settings of the metrics server.

    Attributes:
        address: IP address to listen on; loopback by default, because the page exposes the activity of the bench.
        port: TCP port; 0 for any free one.
        enabled: Whether to serve metrics.
        names: Host names permitted in requests, beside IP addresses, ``localhost`` and this host's own name.
    """

    address: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    enabled: bool = True
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(
            (_is_ip_address(self.address), f"address must be an IP address, got {self.address!r}"),
            *within(self, port=(0, 65_535)),
            *((_is_name(name), f'names must be host names without a port, got "{name}"') for name in self.names),
        )


def _is_name(text: str) -> bool:
    return 0 < len(text) <= 253 and all(character.isalnum() or character in "-._" for character in text)


def _is_ip_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
