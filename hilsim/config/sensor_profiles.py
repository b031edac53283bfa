"""Parsing of sensor profiles by family."""

import inspect
from typing import Any

from hilsim.config.entry_points import find, offered
from hilsim.config.parse import parse_table
from hilsim.config.places import did_you_mean
from hilsim.emulator.families.base import LidarFamily
from hilsim.emulator.families.registry import own_family
from hilsim.errors import ConfigError
from hilsim.registry import ELSEWHERE, OWN
from hilsim.sensor.specs import LidarSpec


def parse_profile(table: dict[str, Any], where: str) -> LidarSpec:
    """Parse a sensor profile's table as the specification of its ``family``.

    Args:
        table: Table of ``read_toml``.
        where: Start of messages, usually the file.

    Raises:
        ConfigError: the profile has faults; the message names all, one per line.
    """
    return parse_table(profile_family(table, where).profile, table, where)


def profile_family(table: dict[str, Any], where: str) -> type[LidarFamily[Any]]:
    """Family of a profile's table: one of hilsim's, or a plug-in's.

    Args:
        table: Table of ``read_toml``.
        where: Start of messages, usually the file.

    Raises:
        ConfigError: there is no such family, or it is not usable.
    """
    wanted = table.get("family", OWN[0])
    if wanted in OWN:
        return own_family(wanted)
    subject = f'{where}: family "{wanted}"'
    found = find(ELSEWHERE, wanted, subject) if isinstance(wanted, str) else None
    if found is None:
        known = [*OWN, *offered(ELSEWHERE)]
        names = " or ".join(f'"{name}"' for name in known)
        raise ConfigError(f"{where}: family must be {names}, got {wanted!r}{did_you_mean(str(wanted)[:80], known)}")
    fault = _fault(found.thing, wanted)
    if fault:
        raise ConfigError(f"{subject}: {found.origin} must give {fault}")
    family_elsewhere: type[LidarFamily[Any]] = found.thing
    return family_elsewhere


def _fault(thing: Any, name: str) -> str:
    """Reason that an object cannot be the family of a name, after "must give"; empty if it can."""
    if not (isinstance(thing, type) and issubclass(thing, LidarFamily)):
        return f"a class of LidarFamily, got {thing!r}"
    if inspect.isabstract(thing):
        return f"a whole family, got one without {', '.join(sorted(thing.__abstractmethods__))}"
    if thing.name != name:
        return f'a family of this name, got one named "{thing.name}"'
    return ""
