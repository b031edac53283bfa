"""``import hilsim`` is the front door: light, complete, and what type checkers see is what programs get."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hilsim
from tools.api_reference import GROUPS


def test_importing_hilsim_imports_no_numba_and_no_numpy():
    code = "import sys, hilsim; hilsim.__version__; dir(hilsim); print([n for n in ('numba', 'numpy', 'pydantic', 'hilsim.api') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_type_checkers_find_each_name_where_programs_get_it():
    tree = ast.parse(Path(hilsim.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    told = {alias.name: node.module for node in block.body for alias in node.names}
    assert told == hilsim._HOMES
    assert sorted(told) == sorted(hilsim.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'hilsim' has no attribute 'emulator_of_everything'"):
        hilsim.emulator_of_everything  # noqa: B018


def test_every_public_name_has_its_place_in_the_reference():
    assert set(hilsim.__all__) - {name for names in GROUPS.values() for name in names} == set()
