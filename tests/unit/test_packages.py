"""Packages stay small enough to be read as a list of names."""

from pathlib import Path

import pytest

import hilsim

_ROOT = Path(hilsim.__file__).parent
_MAX_FILES = 24
_MAX_LINES = 3_000
PACKAGES = sorted(path.parent for path in _ROOT.rglob("__init__.py"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.relative_to(_ROOT.parent)))
def test_a_package_has_few_files_and_lines_of_its_own(package):
    sources = [path.read_text(encoding="utf-8") for path in package.glob("*.py")]
    assert len(sources) <= _MAX_FILES
    assert sum(source.count("\n") for source in sources) <= _MAX_LINES


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.relative_to(_ROOT.parent)))
def test_a_package_says_what_it_is_for(package):
    assert (package / "__init__.py").read_text(encoding="utf-8").startswith('"""')
