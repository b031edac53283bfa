"""Search for profiles by name."""

import os
from pathlib import Path
from typing import Any

from hilsim.config.entry_points import PROFILES, find, offered
from hilsim.config.places import did_you_mean, profiles_directory, shipped_names
from hilsim.config.toml_file import read_toml
from hilsim.errors import ConfigError
from hilsim.world.assets.mesh_parts import is_file

__all__ = ["find_profile", "profiles_directory", "read_profile"]

_MAX_LIKE = 8
"""Profiles of which one can be like the next: more are a circle."""


def read_profile(path: Path) -> dict[str, Any]:
    """Table of a sensor's profile; the keys that it does not give are those of the profile that it is ``like``.

    Args:
        path: File of the profile.

    Raises:
        ConfigError: a file cannot be read, or profiles are like each other in a circle.
    """
    table, where = read_toml(path), path
    for _ in range(_MAX_LIKE):
        like = table.pop("like", None)
        if like is None:
            return table
        if not isinstance(like, str):
            raise ConfigError(f"{where}: like must be the name of a profile or a path ending in .toml, got {like!r}")
        try:
            where = find_profile("sensors", like, where.parent)
        except ConfigError as error:
            raise ConfigError(f"{where}: like: {error}") from error
        table = read_toml(where) | table
    raise ConfigError(f"{path}: like must lead to a profile without like, got {_MAX_LIKE} that are like another one")


def find_profile(kind: str, name: str, rig_directory: Path) -> Path:
    """Path of a profile.

    Args:
        kind: ``sensors``, ``vehicles`` or ``rigs``.
        name: Name of a shipped profile (``vlp16``) or of a plug-in's sensor profile, or a path relative to the rig's own directory.
        rig_directory: Directory of the rig that names it.

    Raises:
        ConfigError: there is no such profile; the message lists the shipped ones.
    """
    if name.endswith(".toml") or "/" in name:
        path = rig_directory / name
        if is_file(path):
            return path
        raise ConfigError(f"{path}: no such profile")
    path = profiles_directory() / kind / f"{name}.toml"
    if is_file(path):
        return path
    elsewhere = _elsewhere(name) if kind == "sensors" else None
    if elsewhere is not None:
        return elsewhere
    names = shipped_names(kind)
    others = offered(PROFILES) if kind == "sensors" else []
    known = f"one of the shipped ones ({', '.join(names)})" + (f" or of plug-ins ({', '.join(others)})" if others else "")
    raise ConfigError(
        f'profile must be a path ending in .toml or {known}, got "{name[:80]}"{did_you_mean(name[:80], [*names, *others], of_models=True)}'
    )


def _elsewhere(name: str) -> Path | None:
    """Path of a plug-in's sensor profile.

    Raises:
        ConfigError: its entry point is not a path of a file.
    """
    subject = f'profile "{name[:80]}"'
    found = find(PROFILES, name, subject)
    if found is None:
        return None
    if not isinstance(found.thing, str | os.PathLike) or not is_file(Path(found.thing)):
        raise ConfigError(f"{subject}: {found.origin} must give the path of a file, got {found.thing!r}")
    return Path(found.thing)
