"""``hilsim.plugins`` is complete, what type checkers see is what programs get, and the page says what each name is."""

import ast
from pathlib import Path

import pytest

from hilsim import plugins
from tests.plugins import EXAMPLE

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "write-a-plugin.md"


@pytest.mark.parametrize("name", plugins.__all__)
def test_every_name_is_there_and_is_on_the_page(name):
    assert getattr(plugins, name).__doc__
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")


def test_type_checkers_find_each_name_where_programs_get_it():
    tree = ast.parse(Path(plugins.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    told = {alias.name: node.module for node in block.body for alias in node.names}
    assert told == plugins._HOMES
    assert sorted(told) == plugins.__all__ == dir(plugins)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'hilsim\.plugins' has no attribute 'everything'"):
        plugins.everything  # noqa: B018


def test_the_page_shows_the_example_as_it_is():
    """Blocks of Python and TOML between ``<!-- FILE -->`` and the next line that ends a block."""
    page = PAGE.read_text(encoding="utf-8")
    shown = [part.partition(" -->\n") for part in page.split("<!-- ")[1:]]
    assert [name for name, _, _ in shown] == ["pyproject.toml", "hilsim_plugin_example/departures.py", "hilsim_plugin_example/spinner.py"]
    for name, _, rest in shown:
        assert rest.split("```")[1].partition("\n")[2] == (EXAMPLE / name).read_text(encoding="utf-8")
