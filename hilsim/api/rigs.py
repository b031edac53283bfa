"""Load a rig from a file, by its name, or from tables made in Python."""

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
    """Read and check a rig with its profiles, and look up its hosts.

    Args:
        source: Path of a rig file, name of a shipped rig (``"demo"``), or mapping with the same tables and keys as the file:
            ``{"name": "bench", "sensor": [{"name": "front", "profile": "vlp16"}]}``. Paths in a mapping are relative to the working directory.
        to: Destination ``HOST`` or ``HOST:PORT`` of every sensor and replay, as for ``--to`` of ``hilsim run``.
        settings: Keys of the rig with new values, as for ``--set``: ``{"sensor.roof.sub_rays": 1}``.

    Returns:
        The rig. Its ``name`` and its ``sensors`` (names) belong to the stable interface, the rest does not.

    Raises:
        ConfigError: the rig is invalid; the message names every fault.
    """
    changes = Changes(to=to, settings=tuple(setting_text(key, value) for key, value in (settings or {}).items()))
    if isinstance(source, Mapping):
        path = Path.cwd() / "rig"
        table = tomllib.loads(toml_text(source))  # plain values, as in a file, also of NumPy's types
        check_limits(table, str(path))
        return resolved(rig_of_table(table, path, changes), changes)
    return resolved(load_rig_file(rig_path(str(source)), changes), changes)


def as_rig(source: Rig | RigSource) -> Rig:
    """Return a rig itself, or load it from its source."""
    return source if isinstance(source, Rig) else load_rig(source)
