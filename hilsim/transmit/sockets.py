"""Sockets that send datagrams with a real sensor's headers, as far as Linux permits.

Sockets stay unconnected: a connected one reports ECONNREFUSED on every second datagram while no receiver listens, where a sensor keeps sending.
Option numbers missing in Python's ``socket`` are from Linux: include/uapi/linux/in.h and include/uapi/asm-generic/socket.h.
"""

import errno
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from hilsim.errors import TransmitError
from hilsim.transmit.specs import FrameSocketSpec, SocketSpec

_IP_MTU_DISCOVER = 10
_IP_RECVERR = 11
_PMTUDISC_DONT = 0
_PMTUDISC_PROBE = 3  # do-not-fragment is set, and path MTU messages of routers are ignored, as by a sensor without a path MTU cache
_SO_NO_CHECK = 11
_SO_SNDBUFFORCE = 32
_SMALLEST_RECEIVE_BUFFER = 1  # the kernel raises it to its minimum; these sockets are not read

_ADVICE = {
    errno.EADDRNOTAVAIL: "give this host the address (ip address add {source}/24 dev INTERFACE) or set another source",
    errno.ENETUNREACH: "there is no route to it: bring the interface up and give it an address in that network, or set the interface",
    errno.EHOSTUNREACH: "there is no route to it: bring the interface up and give it an address in that network, or set the interface",
    errno.ENETDOWN: "the interface is down: ip link set dev INTERFACE up",
    errno.EACCES: "a broadcast address needs broadcast = true; a port below 1024 needs CAP_NET_BIND_SERVICE",
    errno.EPERM: "a privilege is missing (CAP_NET_RAW), or a firewall rule forbids it",
    errno.ENODEV: "there is no interface of that name; ip link lists them",
    errno.EMFILE: "raise the limit of open files (LimitNOFILE)",
}


@dataclass(frozen=True, kw_only=True)
class OpenSocket:
    """A socket, and the settings that the kernel did not grant.

    Attributes:
        socket: Socket, bound and ready to send; the owner closes it.
        shortfalls: Settings not granted, one sentence each; empty if all were.
    """

    socket: socket.socket
    shortfalls: tuple[str, ...]


def open_udp_socket(spec: SocketSpec) -> OpenSocket:
    """Open an unconnected UDP socket with the specification's options, whose destination has a route.

    Raises:
        TransmitError: the port is in use, the address is not this host's, there is no route, or a privilege is missing.
    """
    probe_route(spec)
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        shortfalls = configure(opened, spec)
        shortfalls += _bind(opened, spec)
    except BaseException:
        opened.close()
        raise
    return OpenSocket(socket=opened, shortfalls=shortfalls)


def permit_destination(opened: socket.socket, spec: SocketSpec) -> None:
    """Set the options that the destination needs on a socket shared with other destinations: broadcast, multicast interface and time to live."""
    if spec.broadcast:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    if spec.is_multicast:
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, spec.ttl)
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(spec.source))


def open_packet_socket(spec: FrameSocketSpec) -> OpenSocket:
    """Open a raw socket that sends whole Ethernet frames through an interface, and receives nothing.

    Raises:
        TransmitError: CAP_NET_RAW is missing, or there is no such interface.
    """
    try:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError as error:
        raise TransmitError(
            f'{spec.interface}: frames must be sent with CAP_NET_RAW, got {error.strerror}: grant it (systemd: AmbientCapabilities=CAP_NET_RAW) or use mode "udp"'
        ) from error
    try:
        opened.bind((spec.interface, 0))
    except OSError as error:
        opened.close()
        raise _fault(error, f"cannot send frames through {spec.interface}") from error
    return OpenSocket(socket=opened, shortfalls=())


def configure(opened: socket.socket, spec: SocketSpec) -> tuple[str, ...]:
    """Set the specification's options on a socket; returns the settings that the kernel did not grant, one sentence each.

    Raises:
        TransmitError: the interface does not exist, or a privilege is missing.
    """
    try:
        if spec.interface != opened.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b"\0").decode():
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, spec.interface.encode())
    except OSError as error:
        raise _fault(error, f"cannot send through interface {spec.interface}", spec) from error
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, spec.ttl)
    opened.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PMTUDISC_PROBE if spec.dont_fragment else _PMTUDISC_DONT)
    opened.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 0)
    opened.setsockopt(socket.SOL_SOCKET, _SO_NO_CHECK, int(not spec.udp_checksum))
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALLEST_RECEIVE_BUFFER)
    permit_destination(opened, spec)
    return _set_send_buffer(opened, spec.send_buffer_bytes) if spec.send_buffer_bytes else ()


def _set_send_buffer(opened: socket.socket, size_bytes: int) -> tuple[str, ...]:
    try:
        opened.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, size_bytes)
    except PermissionError:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size_bytes)
    obtained = opened.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 2  # the kernel doubles it for its own bookkeeping
    if obtained >= size_bytes:
        return ()
    return (f"send_buffer_bytes should be {size_bytes}, got {obtained}: raise net.core.wmem_max or grant CAP_NET_ADMIN",)


def _bind(opened: socket.socket, spec: SocketSpec) -> tuple[str, ...]:
    """Bind; a port may be shared with a receiver on this host that listens on all addresses; any other port in use is an error.

    SO_REUSEADDR makes that sharing possible, but would also let a second sender bind the very same address and port unnoticed. So the table of
    bound sockets is read after binding; of two racing processes at least one sees the other. A port that the kernel chooses shall be a free one: with
    SO_REUSEADDR it may be another sender's.
    """
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(spec.source_port != 0))
        opened.bind((spec.source, spec.source_port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise _busy(spec) from error
        raise _fault(error, f"cannot send from {spec.source}:{spec.source_port}", spec) from error
    address, port = opened.getsockname()
    if _bound_count(address, port) > 1:
        raise _busy(spec)
    if address != "0.0.0.0" and _bound_count("0.0.0.0", port) > 0:  # noqa: S104 - compared with, not bound to
        return (f"port {port} of {address} is shared with a program that listens on all addresses",)
    return ()


def _busy(spec: SocketSpec) -> TransmitError:
    return TransmitError(
        f"source port must be free, got {spec.source}:{spec.source_port} in use by another program (ss -ulpn shows which): end it, or give the sensor "
        'another source address or source_ports = "any"'
    )


def _bound_count(address: str, port: int) -> int:
    """UDP sockets bound to exactly this address and port, in this network namespace (proc(5): addresses in the host's byte order)."""
    packed = int.from_bytes(socket.inet_aton(address), "little" if socket.htons(1) != 1 else "big")
    local = f"{packed:08X}:{port:04X}"
    try:
        lines = Path("/proc/thread-self/net/udp").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return 0  # no /proc: unknown
    return sum(line.split()[1] == local for line in lines)


def probe_route(spec: SocketSpec) -> None:
    """Check that the kernel has a route by connecting a temporary socket; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        configure(probe, spec)
        try:
            probe.bind((spec.source, 0))
        except OSError as error:
            raise _fault(error, f"cannot send from {spec.source}", spec) from error
        try:
            probe.connect((spec.destination, spec.destination_port))
        except OSError as error:
            raise _fault(error, f"cannot send from {spec.source} to {spec.destination}:{spec.destination_port}", spec) from error


def _fault(error: OSError, what: str, spec: SocketSpec | None = None) -> TransmitError:
    number = error.errno or 0
    advice = _ADVICE.get(number, "").format(source=spec.source if spec else "")
    return TransmitError(f"{what}: {os.strerror(number)}" + (f"; {advice}" if advice else ""))
