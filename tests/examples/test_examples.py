"""Every program in ``examples/`` runs, in an empty folder, and says something."""

import ast
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
_MOST_LINES = 60


IS_INSTALLED = any(entry.value == "hilsim.testing.plugin" for entry in entry_points(group="pytest11"))


def _command(path):
    if not path.stem.endswith("_test"):
        return [sys.executable]
    plugin = [] if IS_INSTALLED else ["-p", "hilsim.testing.plugin"]  # an environment that was installed before there was one
    return [sys.executable, "-m", "pytest", "-q", "--rootdir", ".", "-p", "no:cacheprovider", *plugin]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_prints_what_it_found(path, tmp_path):
    ran = subprocess.run([*_command(path), path], cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(ran.stdout) > 20
    assert "nan" not in ran.stdout.split()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_what_it_shows(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= _MOST_LINES
    assert len(ast.get_docstring(ast.parse(text)) or "") > 80


def test_there_are_examples():
    assert len(EXAMPLES) >= 8
