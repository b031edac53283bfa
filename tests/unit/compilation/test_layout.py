"""Named tuples in memory, as Python writes them for kernels."""

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

from hilsim.compilation.jit import kernel, placed
from hilsim.compilation.layout import write_tuple
from tests.compiled import compiled_only


class Inner(NamedTuple):
    flag: bool
    count: int
    pair: tuple[float, bool]


@placed
class Outer(NamedTuple):
    first: Any
    inner: Inner
    second: Any
    nothing: None
    table: np.ndarray
    third: Any


@kernel
def read(outer):
    """All numbers of the tuple."""
    table = outer.table
    return (
        outer.first,
        outer.inner.flag,
        outer.inner.count,
        outer.inner.pair,
        outer.second,
        table[0, 1],
        table.shape,
        table.strides,
        outer.third,
    )


NUMBERS = (True, -(2**63), 2**64 - 1, -0.5, np.float32(1.5), np.int8(-3), np.uint16(65_535), np.int32(-7))
TABLES = (np.arange(6, dtype=np.uint8).reshape(2, 3), np.arange(12.0).reshape(3, 4)[:, ::2], np.asfortranarray(np.arange(6.0).reshape(2, 3)))


@compiled_only
@pytest.mark.parametrize("shift", [0, *(pytest.param(shift, marks=pytest.mark.extended) for shift in (1, 2))])
def test_kernels_read_what_python_has(shift):
    cases = itertools.islice(itertools.product(NUMBERS, NUMBERS, TABLES), shift, None, 7)
    for first, second, table in cases:
        outer = Outer(first, Inner(flag=True, count=-5, pair=(2.5, False)), second, None, table, (first, second))
        assert read(outer) == (first, True, -5, (2.5, False), second, table[0, 1], table.shape, table.strides, (first, second))


def test_a_field_of_another_kind_is_refused():
    with pytest.raises(TypeError, match="a tuple for kernels must have arrays, numbers and tuples, got unicode_type"):
        write_tuple(Inner("yes", 1, (0.0, True)))
