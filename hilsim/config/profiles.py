"""Profiles, found by their names."""

from pathlib import Path

from hilsim.assets.mesh_parts import is_file
from hilsim.config.places import did_you_mean, profiles_directory, shipped_names
from hilsim.errors import ConfigError

__all__ = ["find_profile", "profiles_directory"]


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
    path = profiles_directory() / kind / f"{name}.toml"
    if is_file(path):
        return path
    names = shipped_names(kind)
    raise ConfigError(
        f'profile must be a path ending in .toml or one of the shipped ones ({", ".join(names)}), got "{name[:80]}"{did_you_mean(name[:80], names, of_models=True)}'
    )
