"""The generated reference pages are what the code says today."""

import pytest

from hilsim.cli.reference import DIRECTORY, PAGES
from hilsim.config.reference import configuration_reference


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_generated_page_is_current(name):
    assert (DIRECTORY / name).read_text(encoding="utf-8") == PAGES[name](), "run: make docs"


def test_every_key_of_a_rig_has_a_meaning():
    rows = [line for line in configuration_reference().split("\n") if line.startswith("| `")]
    assert len(rows) > 80
    assert not [row for row in rows if row.endswith("|  |")]
