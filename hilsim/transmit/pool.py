"""Open sockets with reference counts: flows with the same source address and port share one."""

import socket
from dataclasses import dataclass, replace

from hilsim.errors import TransmitError
from hilsim.transmit.sockets import configure, open_packet_socket, open_udp_socket, permit_destination, probe_route
from hilsim.transmit.specs import FrameSocketSpec, SocketSpec


@dataclass(kw_only=True)
class _Entry:
    spec: SocketSpec | FrameSocketSpec
    socket: socket.socket
    shortfalls: tuple[str, ...]
    users: int


class SocketPool:
    """Provides sockets by specification, and closes them."""

    def __init__(self) -> None:
        self._entries: dict[tuple[object, ...], _Entry] = {}

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """Settings that the kernel did not grant, one sentence each."""
        return tuple(dict.fromkeys(sentence for entry in self._entries.values() for sentence in entry.shortfalls))

    def acquire(self, spec: SocketSpec | FrameSocketSpec, former: SocketSpec | FrameSocketSpec | None = None) -> socket.socket:
        """Socket for a specification, opened if needed; each call requires one call of ``release``.

        Args:
            spec: Specification of the socket.
            former: Specification that the same flow uses until it has changed over. Its socket's options may be changed if no other flow uses it.

        Raises:
            TransmitError: the socket cannot be opened, or other flows use the same address and port with other options.
        """
        key = _key(spec)
        entry = self._entries.get(key)
        if entry is None:
            opened = open_packet_socket(spec) if isinstance(spec, FrameSocketSpec) else open_udp_socket(spec)
            self._entries[key] = _Entry(spec=spec, socket=opened.socket, shortfalls=opened.shortfalls, users=1)
            return opened.socket
        if isinstance(spec, SocketSpec) and isinstance(entry.spec, SocketSpec):
            if _options(spec) != _options(entry.spec):
                is_sole_user = former is not None and _key(former) == key and entry.users == 1
                if not is_sole_user:
                    raise TransmitError(
                        f"flows from {spec.source}:{spec.source_port} must have the same socket options, got {_differing(spec, entry.spec)}"
                    )
                entry.shortfalls = configure(entry.socket, spec)
                entry.spec = spec
            probe_route(spec)
            permit_destination(entry.socket, spec)
        entry.users += 1
        return entry.socket

    def release(self, spec: SocketSpec | FrameSocketSpec) -> None:
        """Decrement the socket's reference count; at 0 it is closed."""
        entry = self._entries[_key(spec)]
        entry.users -= 1
        if entry.users == 0:
            del self._entries[_key(spec)]
            entry.socket.close()

    def close(self) -> None:
        """Close every socket."""
        for entry in self._entries.values():
            entry.socket.close()
        self._entries.clear()


def shares_socket(spec: SocketSpec | FrameSocketSpec, other: SocketSpec | FrameSocketSpec) -> bool:
    """Whether two specifications share one socket."""
    return _key(spec) == _key(other)


def _options(spec: SocketSpec) -> SocketSpec:
    """Specification without the parts that each flow may choose for itself."""
    return replace(spec, destination="0.0.0.0", destination_port=1, broadcast=False)  # noqa: S104 - a placeholder, bound to nothing


def _differing(spec: SocketSpec, other: SocketSpec) -> str:
    names = ("interface", "ttl", "dont_fragment", "udp_checksum", "send_buffer_bytes")
    return ", ".join(
        f"{name} = {getattr(other, name)!r} and {getattr(spec, name)!r}" for name in names if getattr(spec, name) != getattr(other, name)
    )


def _key(spec: SocketSpec | FrameSocketSpec) -> tuple[object, ...]:
    if isinstance(spec, FrameSocketSpec):
        return (spec.interface,)
    return (spec.source, spec.source_port) if spec.source_port else (_options(spec),)
