"""What can be set about metrics."""

from dataclasses import dataclass
from ipaddress import ip_address

from hilsim.errors import require

DEFAULT_PORT = 9464


@dataclass(frozen=True, kw_only=True)
class MetricsServerSpec:
    """Where the metrics are served.

    Attributes:
        address: IP address to listen on; loopback unless set otherwise, because the page shows what the bench does.
        port: TCP port; 0 lets the kernel choose.
        enabled: Whether they are served at all.
        names: Host names that requests may be addressed to, beside IP addresses, ``localhost`` and this host's own name.
    """

    address: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    enabled: bool = True
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(
            (_is_ip_address(self.address), f"address must be an IP address, got {self.address!r}"),
            (0 <= self.port <= 65535, f"port must be 0 to 65535, got {self.port}"),
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
