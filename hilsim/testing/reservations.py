"""UDP ports and source addresses for tests: no two tests of a host have the same, whoever runs them, and nothing is left when a process dies.

A port cannot be held by binding it, for the program under test is to bind it. So a name in Linux' abstract socket namespace (unix(7)) represents it: one process of a network namespace has the
name, of any user, and the kernel takes it back when that process ends. Ports are taken from below those that the kernel gives away by itself.
"""

import random
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from hilsim.errors import TransmitError

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST, _HIGHEST = 20_000, 65_535
_FEWEST = 1_000
_TRIES = 200
_DICE = random.SystemRandom()  # workers that were forked draw the same from any other


@contextmanager
def reserved_port() -> Iterator[int]:
    """A UDP port that is free and that no other test gets while the block runs.

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
                continue  # another test has it
            if is_free(value):
                yield value
                return
    raise TransmitError(f"a {kind} for a test must be free on this host, got none in {_TRIES} tries")


def _free_range() -> tuple[int, int]:
    """Ports to choose from, the last one excluded."""
    try:
        first, last = map(int, _RANGE.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return _LOWEST, _HIGHEST
    below, above = (_LOWEST, min(first, _HIGHEST)), (max(last + 1, _LOWEST), _HIGHEST)
    widest = max(below, above, key=lambda ports: ports[1] - ports[0])
    return widest if widest[1] - widest[0] >= _FEWEST else (_LOWEST, _HIGHEST)


def _is_unbound(port: str) -> bool:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as asking:
        try:
            asking.bind(("", int(port)))
        except OSError:
            return False
    return True
