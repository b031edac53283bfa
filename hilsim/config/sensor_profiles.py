"""Sensor profiles, read: which family of specification one is."""

from typing import Any

from hilsim.config.parse import parse_table
from hilsim.emulator.families.registry import FAMILIES
from hilsim.errors import ConfigError
from hilsim.sensor.specs import LidarSpec


def parse_profile(table: dict[str, Any], where: str) -> LidarSpec:
    """A sensor profile's table as a specification, by its ``family``.

    Args:
        table: What ``read_toml`` gave.
        where: What messages begin with, usually the file.

    Raises:
        ConfigError: naming every fault, one a line.
    """
    wanted = table.get("family", FAMILIES[0].name)
    for family in FAMILIES:
        if family.name == wanted:
            return parse_table(family.profile, table, where)
    names = " or ".join(f'"{family.name}"' for family in FAMILIES)
    raise ConfigError(f"{where}: family must be {names}, got {wanted!r}")
