"""Distributions for tests: a directory with a package and its metadata, which is all that ``importlib.metadata`` asks of one."""

import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from hilsim import registry
from hilsim.config import part_tables

_MODULES = ("hilsim_plugin_example", "stranger")
EXAMPLE = Path(__file__).parent / "plugin_example"


def install_example(directory):
    """The example of a plug-in, as ``pip install --target directory`` leaves it; the entry points are those of its ``pyproject.toml``.

    Written by hand, because pip would have to fetch what builds a wheel.
    """
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    shutil.copytree(EXAMPLE / "hilsim_plugin_example", directory / "hilsim_plugin_example", ignore=shutil.ignore_patterns("__pycache__"))
    distribution(directory, project["name"], project["version"], project["entry-points"])
    return directory


def distribution(directory, name, version="1.0", entry_points=None):
    """Metadata of a distribution: entry points by group and name."""
    place = directory / f"{name.replace('-', '_')}-{version}.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        line for group, points in (entry_points or {}).items() for line in (f"[{group}]", *(f"{key} = {value}" for key, value in points.items()))
    ]
    (place / "entry_points.txt").write_text("\n".join(lines) + "\n")


def _forget():
    for known in (registry.family_names, registry.family_part, registry.family_parts):
        known.cache_clear()
    for table in part_tables._found.keys() - registry.OWN_PARTS.keys():
        del part_tables._found[table]


@pytest.fixture
def plugin_site(tmp_path, monkeypatch):
    """A directory that distributions are installed to, on the path of imports; their modules are forgotten at the end."""
    monkeypatch.syspath_prepend(tmp_path)
    _forget()
    yield tmp_path
    _forget()
    for name in [name for name in sys.modules if name.partition(".")[0] in _MODULES]:
        del sys.modules[name]
