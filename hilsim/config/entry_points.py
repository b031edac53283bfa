"""What other distributions add to hilsim, found by their entry points (``importlib.metadata``).

Nothing is looked up before a rig names what hilsim itself has not: looking takes milliseconds, and importing a foreign module may take any time.
"""

from importlib import metadata
from typing import Any, NamedTuple

from hilsim.errors import ConfigError

SINKS = "hilsim.sinks"
"""``SinkPlugin`` by the ``kind`` of a ``[[sink]]``."""
FAMILIES = "hilsim.families"
"""Classes of lidar families by the ``family`` of a sensor profile."""
PROFILES = "hilsim.profiles"
"""Paths of sensor profiles by the name that a ``[[sensor]]`` gives as ``profile``."""


class Found(NamedTuple):
    """What an entry point gives.

    Attributes:
        thing: It.
        origin: Whose it is, for people: distribution, version and entry point.
    """

    thing: Any
    origin: str


def offered(group: str) -> list[str]:
    """Names in a group, sorted; nothing is imported."""
    return sorted({point.name for point in metadata.entry_points(group=group)})


def find(group: str, name: str, subject: str) -> Found | None:
    """Object of a name in a group, imported now; None where no distribution has the name.

    Args:
        group: One of those above.
        name: Of the entry point.
        subject: What messages begin with: the key that has the name, and the name.

    Raises:
        ConfigError: several distributions have it, or it cannot be imported; the text names them.
    """
    points = list(metadata.entry_points(group=group, name=name))
    if not points:
        return None
    origins = [_origin(point) for point in points]
    if len(points) > 1:
        raise ConfigError(f"{subject} must come from one distribution, got {' and '.join(origins)}: uninstall all but one")
    try:
        return Found(points[0].load(), origins[0])
    except (Exception, SystemExit) as error:  # the import of a stranger's module may raise anything
        raise ConfigError(f"{subject}: {origins[0]} must be importable, got {type(error).__name__}: {' '.join(str(error).split())}") from error


def _origin(point: metadata.EntryPoint) -> str:
    distribution = point.dist
    whose = f"{distribution.name} {distribution.version}" if distribution else "a distribution without a name"
    return f"{whose} ({point.group}: {point.name} = {point.value})"
