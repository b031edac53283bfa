"""The keys of a rig's ``[gazebo]`` table, as a frozen value with its rules."""

from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Literal

from hilsim.errors import require


@dataclass(frozen=True, kw_only=True)
class GazeboSpec:
    """Publishes the lidars of the scene's SDF file to subscribers of Gazebo's transport.

    Attributes:
        address: IPv4 address that subscribers connect to. With a loopback address no packet leaves this host.
        partition: Partition of the transport; empty: ``GZ_PARTITION`` or ``IGN_PARTITION`` of the environment, or ``HOST:USER`` as in Gazebo.
        messages: Package in the names of message types: ``gz`` for Gazebo Garden and later, ``ignition`` for Citadel to Fortress (as in Debian 12 and Ubuntu 22.04).
            Their bytes are the same.
    """

    address: str = "127.0.0.1"
    partition: str = ""
    messages: Literal["gz", "ignition"] = "gz"

    def __post_init__(self) -> None:
        require(
            (_is_address(self.address), f'address must be the IPv4 address of an interface, got "{self.address}"'),
            ("@" not in self.partition, f'partition must not contain "@", got "{self.partition}"'),
        )


def _is_address(text: str) -> bool:
    try:
        return not (IPv4Address(text).is_unspecified or IPv4Address(text).is_multicast)
    except ValueError:
        return False
