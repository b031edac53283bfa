"""Losses of accepted datagrams in the kernel: counters of interfaces' queues and drivers, and of UDP as a whole.

A full queue drops datagrams that ``sendto`` has accepted. Only with ``IP_RECVERR`` would the socket get an error (ENOBUFS), but that option also makes every ICMP "port unreachable" fail
the next datagram, and a sensor continues without a listener (decision 23). So the counters are read, which cover the whole network namespace and not this process alone:

- UDP's ``SndbufErrors`` (proc_net(5), net/ipv4/udp.c): refusals for lack of room, including those reported by the socket (EAGAIN).
- Packets and drops of each root queueing discipline (rtnetlink(7), RTM_GETQDISC; include/uapi/linux/pkt_sched.h and gen_stats.h), including later drops by CoDel, which no socket reports.
- ``tx_dropped`` of each interface (its driver's, Documentation/networking/statistics.rst), from /proc/net/dev.
"""

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from hilsim.transmit.specs import FrameSocketSpec, SocketSpec

_RTM_GETROUTE, _RTM_GETQDISC, _ERROR, _DONE = 26, 38, 2, 3
_REQUEST, _MULTI, _DUMP = 0x1, 0x2, 0x300
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_ROUTE = struct.Struct("=BBBBBBBBI")
_TRAFFIC = struct.Struct("=BxxxiIII")
_RTA_DST, _RTA_SRC, _RTA_OIF = 1, 2, 4
_TCA_STATS2, _STATS_BASIC, _STATS_QUEUE, _STATS_PACKETS64 = 7, 1, 3, 8
_ROOT = 0xFFFFFFFF
_NO_ROUTE = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EINVAL}  # EINVAL: the source is not an address of this host (any more)
_TYPE_MASK = 0x3FFF
_DRIVER_DROPS = 11
_BUFFER_SIZE = 1 << 16
_TIMEOUT_S = 0.05  # the kernel answers within microseconds unless a lock is held: then no figures are better than a wait


class InterfaceCounters(NamedTuple):
    """Counters of one interface since its creation.

    Attributes:
        interface: Name of the interface.
        queue_packets: Packets accepted and passed on by its queueing disciplines; 0 where it has none, or where they cannot be read.
        queue_drops: Packets dropped by them.
        driver_drops: Packets dropped by its driver.
    """

    interface: str
    queue_packets: int
    queue_drops: int
    driver_drops: int


class KernelDrops(NamedTuple):
    """Counters of this network namespace.

    Attributes:
        udp_sent: Datagrams passed on by UDP; None where the kernel does not provide the counter.
        udp_refused: Datagrams for which there was no room, in a socket's buffer or in a queue; None where the kernel does not provide the counter.
        interfaces: Interfaces that packets leave through.
    """

    udp_sent: int | None
    udp_refused: int | None
    interfaces: tuple[InterfaceCounters, ...]


def read_kernel_drops(targets: Iterable[SocketSpec | FrameSocketSpec]) -> KernelDrops:
    """Read the counters for some targets; takes some 0.1 ms. A counter that cannot be read is None, or missing."""
    sent, refused = _read_udp()
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as asking:
            asking.settimeout(_TIMEOUT_S)
            names = _interfaces(asking, targets)
            queues = _read_queues(asking) if names else {}
    except OSError:  # not permitted, or no descriptor is left: drops of queues are still visible in UDP's counter
        names, queues = {target.interface for target in targets if target.interface}, {}
    drivers = _read_driver_drops()
    return KernelDrops(sent, refused, tuple(InterfaceCounters(name, *queues.get(name, (0, 0)), drivers.get(name, 0)) for name in sorted(names)))


def _read_udp() -> tuple[int | None, int | None]:
    try:
        text = Path("/proc/thread-self/net/snmp").read_text(encoding="ascii")
    except OSError:
        return None, None
    names, values = (line.split() for line in text.splitlines() if line.startswith("Udp:"))
    found = dict(zip(names[1:], map(int, values[1:]), strict=True))
    return found.get("OutDatagrams"), found.get("SndbufErrors")


def _read_driver_drops() -> dict[str, int]:
    """Drops by interface: the twelfth figure of its line in proc_net(5)'s ``dev``."""
    try:
        lines = Path("/proc/thread-self/net/dev").read_text(encoding="ascii", errors="replace").splitlines()[2:]
    except OSError:
        return {}
    split = (line.partition(":") for line in lines)
    return {name.strip(): int(figures.split()[_DRIVER_DROPS]) for name, _, figures in split}


def _interfaces(asking: socket.socket, targets: Iterable[SocketSpec | FrameSocketSpec]) -> set[str]:
    """Names of the interfaces through which the targets are reached now."""
    found = set()
    for target in targets:
        if target.interface:
            found.add(target.interface)
        elif isinstance(target, SocketSpec):
            found.add(_routed_interface(asking, target.source, target.destination))
    return found - {""}


def _routed_interface(asking: socket.socket, source: str, destination: str) -> str:
    """Interface through which the kernel would send now; empty where there is no route."""
    asked = _ROUTE.pack(socket.AF_INET, 32, 32, 0, 0, 0, 0, 0, 0)
    asked += _attribute(_RTA_DST, socket.inet_aton(destination)) + _attribute(_RTA_SRC, socket.inet_aton(source))
    for body in _ask(asking, _RTM_GETROUTE, _REQUEST, asked):
        index = dict(_attributes(body[_ROUTE.size :])).get(_RTA_OIF)
        if index is not None:
            return _interface_name(int.from_bytes(index, sys.byteorder))
    return ""


def _read_queues(asking: socket.socket) -> dict[str, tuple[int, int]]:
    """Packets and drops of the root queueing discipline by interface; disciplines below a root are included."""
    found: dict[str, tuple[int, int]] = {}
    for body in _ask(asking, _RTM_GETQDISC, _REQUEST | _DUMP, _TRAFFIC.pack(0, 0, 0, 0, 0)):
        _, index, _, parent, _ = _TRAFFIC.unpack_from(body)
        if parent != _ROOT:
            continue
        statistics = dict(_attributes(dict(_attributes(body[_TRAFFIC.size :])).get(_TCA_STATS2, b"")))
        basic, queue = statistics.get(_STATS_BASIC, bytes(16)), statistics.get(_STATS_QUEUE, bytes(20))
        packets = int.from_bytes(statistics.get(_STATS_PACKETS64, basic[8:12]), sys.byteorder)
        found[_interface_name(index)] = (packets, struct.unpack_from("=I", queue, 8)[0])
    return found


def _interface_name(index: int) -> str:
    try:
        return socket.if_indextoname(index)
    except OSError:
        return ""  # the interface has been removed meanwhile


def _ask(asking: socket.socket, kind: int, flags: int, body: bytes) -> Iterator[bytes]:
    """Bodies of the kernel's answers to one request."""
    asking.send(_HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body)
    while True:
        answer = asking.recv(_BUFFER_SIZE)
        at = 0
        while at + _HEADER.size <= len(answer):
            size, message_type, answer_flags, _, _ = _HEADER.unpack_from(answer, at)
            if message_type == _ERROR:
                number = -struct.unpack_from("=i", answer, at + _HEADER.size)[0]
                if number in _NO_ROUTE:
                    return
                raise OSError(number, os.strerror(number))
            if message_type == _DONE:
                return
            yield answer[at + _HEADER.size : at + size]
            if not answer_flags & _MULTI:
                return
            at += (size + 3) & ~3


def _attribute(kind: int, value: bytes) -> bytes:
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        size, kind = _ATTRIBUTE.unpack_from(data, at)
        if size < _ATTRIBUTE.size:
            return
        yield kind & _TYPE_MASK, data[at + _ATTRIBUTE.size : at + size]
        at += (size + 3) & ~3
