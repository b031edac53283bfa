"""Where shipped profiles are: in the wheel beside the package, in a checkout at its top."""

from pathlib import Path
from typing import Any

from hilsim.assets.mesh_parts import is_file
from hilsim.config.parse import parse_table
from hilsim.errors import ConfigError
from hilsim.sensor.cepton_specs import CeptonSpec
from hilsim.sensor.velodyne_specs import VelodyneSpec

_PACKAGE = Path(__file__).resolve().parent.parent


def profiles_directory() -> Path:
    """The directory of shipped profiles.

    Raises:
        ConfigError: the installation has none.
    """
    for place in (_PACKAGE / "_profiles", _PACKAGE.parent / "profiles"):
        if place.is_dir():
            return place
    raise ConfigError(f"{_PACKAGE}: the installation has no profiles; install hilsim-lidar again")


def parse_profile(table: dict[str, Any], where: str) -> VelodyneSpec | CeptonSpec:
    """A sensor profile's table as a specification, by its ``family``.

    Args:
        table: What ``read_toml`` gave.
        where: What messages begin with, usually the file.

    Raises:
        ConfigError: naming every fault, one a line.
    """
    family = table.get("family", "velodyne")
    match family:
        case "velodyne":
            return parse_table(VelodyneSpec, table, where)
        case "cepton":
            return parse_table(CeptonSpec, table, where)
    raise ConfigError(f'{where}: family must be "velodyne" or "cepton", got {family!r}')


def find_profile(kind: str, name: str, rig_directory: Path) -> Path:
    """Path of a profile.

    Args:
        kind: ``sensors``, ``vehicles`` or ``rigs``.
        name: A shipped profile's name (``vlp16``) or a path, relative to the rig's own directory.
        rig_directory: The directory of the rig that names it.

    Raises:
        ConfigError: there is none; the text lists the shipped ones.
    """
    if name.endswith(".toml") or "/" in name:
        path = rig_directory / name
        if is_file(path):
            return path
        raise ConfigError(f"{path}: no such profile")
    shipped = profiles_directory() / kind
    path = shipped / f"{name}.toml"
    if is_file(path):
        return path
    names = ", ".join(sorted(entry.stem for entry in shipped.glob("*.toml")))
    raise ConfigError(f'profile must be a path ending in .toml or one of the shipped ones ({names}), got "{name[:80]}"')
