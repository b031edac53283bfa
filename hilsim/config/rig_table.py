"""Table of a file given as a rig."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hilsim.config.places import SDF_SUFFIXES
from hilsim.config.toml_file import read_toml
from hilsim.errors import ConfigError


def rig_table(path: Path) -> Mapping[str, Any]:
    """Contents of a rig file; for a world or model of Gazebo, a rig made from it.

    Raises:
        ConfigError: the file cannot be read, or is not TOML.
    """
    if path.suffix.lower() not in SDF_SUFFIXES:
        return read_toml(path)
    if not path.is_file():
        raise ConfigError(f"{path}: file not found")
    return {"name": path.stem, "scene": {"sdf": path.name}, "gazebo": {}}
