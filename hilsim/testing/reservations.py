"""Reservation of UDP ports and source addresses for tests: unique on a host, for all users, and released when the process ends.

A port cannot be reserved by binding it, because the program under test binds it. So a name in Linux' abstract socket namespace (unix(7)) represents it: only one process of a network namespace has the
name, among all users, and the kernel releases it when that process ends. Ports are chosen below the kernel's ephemeral range.
"""

import random
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from hilsim.errors import TransmitError

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST, _HIGHEST = 20_000, 65_535
_MIN_PORTS = 1_000
_TRIES = 200
_DICE = random.SystemRandom()  # forked workers would draw the same numbers from any other generator


@contextmanager
def reserved_port() -> Iterator[int]:
    """A free UDP port that no other test gets while the block runs.

    Raises:
        TransmitError: none was found.
    """
    lowest, highest = _free_range()
    with _reserved("port", lambda: str(_DICE.randrange(lowest, highest)), _is_unbound) as port:
        yield int(port)


@contextmanager
def reserved_source() -> Iterator[str]:
    """A loopback address that no other test's sensor has while the block runs.

    Raises:
        TransmitError: none was found.
    """
    with _reserved("source", lambda: f"127.0.{_DICE.randrange(100, 200)}.{_DICE.randrange(1, 255)}", lambda _: True) as address:
        yield address


@contextmanager
def _reserved(kind: str, draw: Callable[[], str], is_free: Callable[[str], bool]) -> Iterator[str]:
    with ExitStack() as held:
        for _ in range(_TRIES):
            value = draw()
            name = held.enter_context(closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)))
            try:
                name.bind(f"\0hilsim-testing-{kind}-{value}")
            except OSError:
                continue  # reserved by another test
            if is_free(value):
                yield value
                return
    raise TransmitError(f"a {kind} for a test must be free on this host, got none in {_TRIES} tries")


def _free_range() -> tuple[int, int]:
    """Range of ports to choose from, the end excluded."""
    try:
        first, last = map(int, _RANGE.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return _LOWEST, _HIGHEST
    below, above = (_LOWEST, min(first, _HIGHEST)), (max(last + 1, _LOWEST), _HIGHEST)
    widest = max(below, above, key=lambda ports: ports[1] - ports[0])
    return widest if widest[1] - widest[0] >= _MIN_PORTS else (_LOWEST, _HIGHEST)


def _is_unbound(port: str) -> bool:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as asking:
        try:
            asking.bind(("", int(port)))
        except OSError:
            return False
    return True
