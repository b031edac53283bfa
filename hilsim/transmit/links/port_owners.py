"""Owner of a serial or network port that should be free: the program's name and process id, from /proc (proc(5))."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_MINORS = 256
_PTS_MAJORS = range(136, 144)  # pseudo-terminals, which each container numbers separately (Linux: Documentation/admin-guide/devices.txt)


def port_holder(path: str) -> str:
    """Other process that has a device open, as ``"QGroundControl (pid 4711)"``; empty if none is found.

    Processes of other users are found only with the permission to inspect them (root). The creator of a pseudo-terminal may keep both ends open; it is excluded.
    """
    try:
        device = Path(path).stat()
    except OSError:
        return ""
    is_terminal = os.major(device.st_rdev) in _PTS_MAJORS
    return _first(entry for entry in _descriptors() if _is_same_device(entry, device) and not (is_terminal and _has_other_end(entry, device)))


def socket_holder(protocol: str, port: int) -> str:
    """Other process that has a local port bound, in the format of ``port_holder``.

    Args:
        protocol: ``"tcp"`` or ``"udp"``.
        port: Port number; sockets on any address of this network namespace.
    """
    links = {f"socket:[{inode}]" for inode in _inodes_at(protocol, port)}
    return _first(entry for entry in _descriptors() if links and _target(entry) in links)


def _first(entries: Iterator[Path]) -> str:
    for entry in entries:
        pid = entry.parts[2]
        try:
            name = (_PROC / pid / "comm").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue  # the process has ended
        return f"{name} (pid {pid})"
    return ""


def _descriptors() -> Iterator[Path]:
    """``/proc/PID/fd/N`` of every other process that may be inspected."""
    for process in _PROC.iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                yield from (process / "fd").iterdir()
            except OSError:
                continue  # another user's process, or it has ended


def _is_same_device(entry: Path, device: os.stat_result) -> bool:
    try:
        held = entry.stat()
    except OSError:
        return False
    is_same = stat.S_ISCHR(held.st_mode) and held.st_rdev == device.st_rdev
    return is_same and (os.major(held.st_rdev) not in _PTS_MAJORS or held.st_dev == device.st_dev)


def _has_other_end(entry: Path, device: os.stat_result) -> bool:
    """Whether the process that has one end of a pseudo-terminal open has the other end open as well."""
    index = f"tty-index:\t{(os.major(device.st_rdev) - _PTS_MAJORS[0]) * _MINORS + os.minor(device.st_rdev)}"
    process = entry.parent.parent
    try:
        others = [other.name for other in entry.parent.iterdir() if _target(other).endswith("/ptmx")]
        return any(index in (process / "fdinfo" / name).read_text(encoding="ascii").splitlines() for name in others)
    except OSError:
        return False


def _target(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except OSError:
        return ""


def _inodes_at(protocol: str, port: int) -> Iterator[str]:
    for family in (protocol, f"{protocol}6"):
        try:
            lines = (_PROC / "thread-self" / "net" / family).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            columns = line.split()
            if int(columns[1].rsplit(":", 1)[1], 16) == port:
                yield columns[9]
