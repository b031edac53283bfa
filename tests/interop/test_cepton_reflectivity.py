"""The scale of reflectivities against the vendor's own table."""

import ast
import importlib.util
from pathlib import Path

import pytest

from hilsim.sensor.response import linear_reflectivity


@pytest.fixture(scope="module")
def vendors_table():
    """The 256 values of ``cepton_sdk2/frame.py``, read as text: importing the package would load a binary into this process."""
    found = importlib.util.find_spec("cepton_sdk2")
    if found is None or found.origin is None:
        pytest.skip("cepton-sdk2 is not installed (pip install --group test brings it)")
    tree = ast.parse(Path(found.origin).with_name("frame.py").read_text())
    (value,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "reflectivity_LUT"
    ]
    assert isinstance(value, ast.Call)
    return ast.literal_eval(value.args[0])


def test_every_value_of_the_vendors_table_comes_back_as_its_code(vendors_table):
    assert len(vendors_table) == 256
    assert [linear_reflectivity(ratio) for ratio in vendors_table] == list(range(256))
