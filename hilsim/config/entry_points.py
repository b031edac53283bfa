"""Plug-ins of other distributions, found by their entry points (``importlib.metadata``).

They are searched only when a rig names an object that hilsim does not have: searching takes milliseconds, and importing a foreign module any time.
"""

from importlib import metadata
from typing import Any, NamedTuple

from hilsim.errors import ConfigError

SINKS = "hilsim.sinks"
"""Entry point group of sinks: ``SinkPlugin`` by the ``kind`` of a ``[[sink]]``."""
PARTS = "hilsim.parts"
"""Entry point group of kinds of parts: ``PartKind`` by the name of a rig's table."""
PROFILES = "hilsim.profiles"
"""Entry point group of sensor profiles: paths by the ``profile`` of a ``[[sensor]]``."""


class Found(NamedTuple):
    """Object of an entry point.

    Attributes:
        thing: Imported object.
        origin: Origin for messages: distribution, version and entry point.
    """

    thing: Any
    origin: str


def offered(group: str) -> list[str]:
    """Sorted names in a group; nothing is imported."""
    return sorted({point.name for point in metadata.entry_points(group=group)})


def find(group: str, name: str, subject: str) -> Found | None:
    """Import the object of a name in a group; None if no distribution has the name.

    Args:
        group: One of the groups above.
        name: Name of the entry point.
        subject: Start of messages: the key that has the name, and the name.

    Raises:
        ConfigError: several distributions have the name, or the import fails; the message names them.
    """
    points = list(metadata.entry_points(group=group, name=name))
    if not points:
        return None
    origins = [_origin(point) for point in points]
    if len(points) > 1:
        raise ConfigError(f"{subject} must come from one distribution, got {' and '.join(origins)}: uninstall all but one")
    try:
        return Found(points[0].load(), origins[0])
    except (Exception, SystemExit) as error:  # the import of a foreign module may raise any exception
        raise ConfigError(f"{subject}: {origins[0]} must be importable, got {type(error).__name__}: {' '.join(str(error).split())}") from error


def _origin(point: metadata.EntryPoint) -> str:
    distribution = point.dist
    whose = f"{distribution.name} {distribution.version}" if distribution else "a distribution without a name"
    return f"{whose} ({point.group}: {point.name} = {point.value})"
