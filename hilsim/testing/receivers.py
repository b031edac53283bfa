"""Receivers bound to a UDP port of this host, and their queued bytes: proc_net(5), ``udp`` and ``udp6``."""

from pathlib import Path
from typing import NamedTuple

_TABLES = (Path("/proc/thread-self/net/udp"), Path("/proc/thread-self/net/udp6"))
_LOCAL, _QUEUES, _DROPS = 1, 4, 12


class Waiting(NamedTuple):
    """Kernel's information on the sockets bound to a port.

    Attributes:
        sockets: Number of sockets.
        most_bytes: Largest number of bytes queued at one of them, as the kernel counts its buffers.
        drops: Number of datagrams dropped at them because a buffer was full, since they were opened.
    """

    sockets: int
    most_bytes: int
    drops: int


def waiting_at(host: str, port: int) -> Waiting:
    """Sockets at a port that receive datagrams to an address.

    Args:
        host: IPv4 address of this host.
        port: UDP port.
    """
    address = "".join(f"{int(part):02X}" for part in reversed(host.split(".")))
    hearing = {address, "0" * 8, "0" * 32, "0" * 16 + "FFFF0000" + address}  # this address, any, any of IPv6, this one in IPv6 notation
    rows = [row for table in _TABLES for row in _rows(table)]
    found = [row for row in rows if row[_LOCAL].endswith(f":{port:04X}") and row[_LOCAL].rpartition(":")[0] in hearing]
    return Waiting(len(found), max((int(row[_QUEUES].partition(":")[2], 16) for row in found), default=0), sum(int(row[_DROPS]) for row in found))


def _rows(table: Path) -> list[list[str]]:
    try:
        return [line.split() for line in table.read_text(encoding="ascii").splitlines()[1:]]
    except OSError:
        return []  # a kernel without IPv6
