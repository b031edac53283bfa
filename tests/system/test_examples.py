"""Every program in ``examples/`` runs, in an empty folder and with the installed wheel, and says something."""

import ast
from pathlib import Path

import pytest

pytestmark = [pytest.mark.extended, pytest.mark.system]

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
_MAX_LINES = 60


def _command(path):
    pytest_of_it = ("-m", "pytest", "-q", "--rootdir", ".", "-p", "no:cacheprovider") if path.stem.endswith("_test") else ()
    return *pytest_of_it, path


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_prints_what_it_found(path, tmp_path, installed_wheel):
    ran = installed_wheel.run(installed_wheel.python, *_command(path), cwd=tmp_path)
    assert len(ran.stdout) > 20
    assert "nan" not in ran.stdout.split()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_what_it_shows(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= _MAX_LINES
    assert len(ast.get_docstring(ast.parse(text)) or "") > 80


def test_there_are_examples():
    assert len(EXAMPLES) >= 8
