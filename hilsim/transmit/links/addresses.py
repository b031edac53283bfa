"""Addresses and rates in a rig; without imports of kernels, so that a diagnosis need not load the flight loop."""

from ipaddress import AddressValueError, IPv4Address

RATES_HZ = (50, 100, 125, 200, 250, 500)
"""Rates of sensor frames in Hz: whole steps of the physics per frame."""


def is_address(text: str) -> bool:
    """Whether a text is ``a.b.c.d:port``."""
    host, _, port = text.rpartition(":")
    try:
        IPv4Address(host)
    except AddressValueError:
        return False
    return port.isdigit() and 1 <= int(port) <= 65_535


def host_and_port(address: str) -> tuple[str, int]:
    """Host and port of a text that satisfies ``is_address``."""
    host, _, port = address.rpartition(":")
    return host, int(port)
