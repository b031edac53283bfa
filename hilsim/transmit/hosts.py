"""Host names and their addresses."""

import re
import socket
import threading
from ipaddress import AddressValueError, IPv4Address

from hilsim.errors import TransmitError

_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
RESOLVING_S = 5.0
"""Timeout of a name server; a start and a reload wait for it."""


def is_ipv4(text: str) -> bool:
    """Whether a text is an IPv4 address."""
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True


def is_host(text: str) -> bool:
    """Whether a text is an IPv4 address, or may be the name of a host (RFC 1123; a last label of digits only is a malformed address, not a name)."""
    if is_ipv4(text):
        return True
    labels = text.removesuffix(".").split(".")
    return len(text) <= 253 and all(_LABEL.fullmatch(label) for label in labels) and not labels[-1].isdigit()


def is_loopback(address: str) -> bool:
    """Whether an IPv4 address is a loopback address."""
    return IPv4Address(address).is_loopback


def address_towards(destination: str) -> str:
    """This host's source address for packets to a destination, by its routes.

    Args:
        destination: IPv4 address.

    Raises:
        TransmitError: there is no route.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            probe.connect((destination, 9))  # sends nothing
        except OSError as error:
            raise TransmitError(f"a route must lead to {destination}, got {error.strerror} (ip route get {destination})") from error
        return str(probe.getsockname()[0])


def address_of(host: str) -> str:
    """IPv4 address of a host: the first one that this machine's resolver returns. An address is returned unchanged.

    Raises:
        TransmitError: the host has no address, or no answer arrived within ``RESOLVING_S``.
    """
    if is_ipv4(host):
        return host
    found: list[str] = []
    reasons: list[str] = []

    def ask() -> None:
        try:
            answers = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_DGRAM)
        except (OSError, UnicodeError) as error:
            reasons.append(getattr(error, "strerror", None) or str(error))
        else:
            found.extend(str(answer[4][0]) for answer in answers)

    asking = threading.Thread(target=ask, name="resolve", daemon=True)  # a waiting resolver cannot be stopped
    asking.start()
    asking.join(RESOLVING_S)
    if not found:
        reason = reasons[0] if reasons else f"no answer within {RESOLVING_S:g} s"
        raise TransmitError(f'must be an IPv4 address or the name of a host that has one, got "{host}": {reason}')
    return found[0]
