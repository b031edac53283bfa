"""The generated reference pages are what the code says today."""

import re

import pytest

from hilsim.config.places import profiles_directory
from hilsim.config.toml_file import read_toml
from tools.configuration_reference import configuration_reference
from tools.reference import DIRECTORY, PAGES, generated_page


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_generated_page_is_current(name):
    assert (DIRECTORY / name).read_text(encoding="utf-8") == generated_page(name), "run: make docs"


def test_every_key_of_a_rig_has_a_meaning():
    rows = [line for line in configuration_reference().split("\n") if line.startswith("| `")]
    assert len(rows) > 80
    assert not [row for row in rows if row.endswith("|  |")]


def test_no_cell_is_a_piece_of_a_sentence():
    """A sentence that runs on in the next row is one that begins in lower case, or ends without a stop."""
    meanings = [line.rsplit(" | ", 1)[1].removesuffix(" |") for line in configuration_reference().split("\n") if line.startswith("| `")]
    assert [meaning for meaning in meanings if not meaning.endswith((".", "?")) or meaning[0].islower()] == []


def keys_of(table):
    """Every key in a TOML table and in the tables inside it."""
    for key, value in table.items():
        yield key
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                yield from keys_of(inner)


@pytest.mark.parametrize("path", sorted(profiles_directory().glob("*/*.toml")), ids=lambda path: path.stem)
def test_every_key_of_a_shipped_profile_is_described(path):
    described = set(re.findall(r"^\| `(\w+)` ", configuration_reference(), re.MULTILINE))
    assert set(keys_of(read_toml(path))) - described == set()
