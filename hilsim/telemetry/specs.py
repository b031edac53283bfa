"""What can be set about metrics."""

from dataclasses import dataclass
from ipaddress import ip_address

from hilsim.errors import require

DEFAULT_PORT = 9464


@dataclass(frozen=True, kw_only=True)
class MetricsServerSpec:
    """Where the metrics are served.

    Attributes:
        address: IP address to listen on; loopback unless the rig says otherwise, for the page tells what the bench does.
        port: TCP port; 0 lets the kernel choose.
        enabled: Whether they are served at all.
    """

    address: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    enabled: bool = True

    def __post_init__(self) -> None:
        require(
            (_is_ip_address(self.address), f"address must be an IP address, got {self.address!r}"),
            (0 <= self.port <= 65535, f"port must be 0 to 65535, got {self.port}"),
        )


def _is_ip_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
