"""A rig from a file, by its name, or made in Python."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from hilsim.config.changes import Changes
from hilsim.config.hosts import resolved
from hilsim.config.places import rig_path
from hilsim.config.rig import Rig, rig_of_table
from hilsim.config.rig import load_rig as load_rig_file
from hilsim.config.toml_file import check_limits
from hilsim.config.toml_text import setting_text, toml_text

RigSource: TypeAlias = str | Path | Mapping[str, Any]
"""A path, the name of a shipped rig, or a mapping of tables."""


def load_rig(source: RigSource, *, to: str = "", settings: Mapping[str, Any] | None = None) -> Rig:
    """Read and check a rig, with the profiles it names, and look up the hosts it names.

    Args:
        source: The path of a rig file, the name of a shipped rig (``"demo"``), or a mapping with the same tables and keys as the file:
            ``{"name": "bench", "sensor": [{"name": "front", "profile": "vlp16"}]}``. Files that a mapping names are relative to the working directory.
        to: ``HOST`` or ``HOST:PORT`` that every sensor and replay sends to instead, as ``--to`` of ``hilsim run``.
        settings: Keys of the rig with other values, as ``--set``: ``{"sensor.roof.sub_rays": 1}``.

    Returns:
        The rig: its ``name`` and the names of its ``sensors`` can be asked for; the rest of it is not part of the stable interface.

    Raises:
        ConfigError: the rig is not sound; the text names every fault.
    """
    changes = Changes(to=to, settings=tuple(setting_text(key, value) for key, value in (settings or {}).items()))
    if isinstance(source, Mapping):
        path = Path.cwd() / "rig"
        table = tomllib.loads(toml_text(source))  # plain values, as a file has them: of NumPy's too
        check_limits(table, str(path))
        return resolved(rig_of_table(table, path, changes), changes)
    return resolved(load_rig_file(rig_path(str(source)), changes), changes)


def as_rig(source: Rig | RigSource) -> Rig:
    """A rig as it is, or loaded."""
    return source if isinstance(source, Rig) else load_rig(source)
