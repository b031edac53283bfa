"""Tables as TOML: what is written is read back the same."""

import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.config.toml_text import toml_text
from hilsim.errors import ConfigError

TEXT = st.text(st.characters(exclude_categories=("Cs",)))
LEAVES = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXT
TABLES = st.dictionaries(TEXT, st.recursive(LEAVES, lambda part: st.lists(part, max_size=4) | st.dictionaries(TEXT, part, max_size=4), max_leaves=20))


@given(TABLES)
def test_a_table_is_read_back_the_same(table):
    assert tomllib.loads(toml_text(table)) == table


def test_not_a_number_is_written_too():
    assert math.isnan(tomllib.loads(toml_text({"x": math.nan}))["x"])


def test_arrays_scalars_tuples_and_paths_are_plain_values():
    table = {"a": np.arange(3.0), "b": np.int32(4), "c": np.bool_(1), "d": (1, 2), "e": Path("/x/y")}
    assert tomllib.loads(toml_text(table)) == {"a": [0.0, 1.0, 2.0], "b": 4, "c": True, "d": [1, 2], "e": "/x/y"}


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({"sensor": [{"name": None}]}, r"sensor\[0\]\.name must be a text, a number, a truth value, a list or a table, got None"),
        ({"scene": {3: 1}}, "scene: a key must be a text, got 3"),
    ],
)
def test_values_that_toml_cannot_express_are_named_with_their_place(table, fault):
    with pytest.raises(ConfigError, match=fault):
        toml_text(table)
