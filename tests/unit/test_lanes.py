"""Sixteen numbers side by side are what sixteen numbers are one by one, compiled and as NumPy has them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hilsim import _lanes
from hilsim._jit import kernel
from hilsim._lanes import (
    WIDTH,
    bits_of,
    count_bits,
    doubles,
    first_bit,
    floor_lanes,
    gather,
    greater_lanes,
    lesser_lanes,
    load_lanes,
    magnitudes,
    mask_of,
    select,
    singles,
    spread,
    store_lanes,
)

SPECIAL = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-45, 3e38, -3e38, 1e-20, 2.5]


def rows(dtype, count=3):
    width = 8 * np.dtype(dtype).itemsize
    values = st.one_of(st.sampled_from(SPECIAL).map(lambda value: float(np.dtype(dtype).type(value))), st.floats(width=width))
    return arrays.arrays(dtype, (count, WIDTH), elements=values)


@kernel
def reckon(values, results, bits):
    """Every operator, a row of ``results`` each; comparisons to ``bits``."""
    a, b, c = load_lanes(values, 0), load_lanes(values, 1), load_lanes(values, 2)
    scalar = values[2, 0]
    store_lanes(results, 0, a + b)
    store_lanes(results, 1, a - b)
    store_lanes(results, 2, a * b)
    store_lanes(results, 3, a / b)
    store_lanes(results, 4, lesser_lanes(a, b))
    store_lanes(results, 5, greater_lanes(a, b))
    store_lanes(results, 6, scalar - a * scalar)
    store_lanes(results, 7, select((a < b) & (b < c), a, c))
    store_lanes(results, 8, select((a < b) | (b >= c), scalar, c))
    store_lanes(results, 9, spread(scalar))
    bits[0], bits[1], bits[2] = bits_of(a < b), bits_of(a <= scalar), bits_of(scalar > b)
    bits[3], bits[4] = bits_of(a >= b), bits_of(a == b)


def expected(values):
    a, b, c = values
    scalar = c[0]
    with np.errstate(all="ignore"):
        chosen = [a + b, a - b, a * b, a / b, np.where(a < b, a, b), np.where(a > b, a, b), scalar - a * scalar]
        chosen += [np.where((a < b) & (b < c), a, c), np.where((a < b) | (b >= c), scalar, c), np.full(WIDTH, scalar)]
        masks = [a < b, a <= scalar, scalar > b, a >= b, a == b]
    return np.array(chosen), [int(np.packbits(mask, bitorder="little").view(np.uint16)[0]) for mask in masks]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_operators_give_what_numbers_one_by_one_give(dtype, data):
    values = data.draw(rows(dtype))
    results, bits = np.zeros((10, WIDTH), dtype), np.zeros(5, np.int64)
    reckon(values, results, bits)
    wanted, masks = expected(values)
    np.testing.assert_array_equal(results, wanted)  # to the bit: nothing is contracted
    assert bits.tolist() == masks


@kernel
def convert(values, wide, narrow):
    """Conversions, to rows of ``wide`` and ``narrow``."""
    row = load_lanes(wide, 0)
    store_lanes(wide, 1, doubles(load_lanes(values, 0)))
    store_lanes(wide, 2, floor_lanes(row))
    store_lanes(wide, 3, magnitudes(row))
    store_lanes(narrow, 0, singles(row))


@given(singles_=rows(np.float32, 1), wide=rows(np.float64, 4))
def test_conversions_are_numpys(singles_, wide):
    given_, narrow = wide[0].copy(), np.zeros((1, WIDTH), np.float32)
    convert(singles_, wide, narrow)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(wide[1:], [singles_[0].astype(np.float64), np.floor(given_), np.abs(given_)])
        np.testing.assert_array_equal(narrow[0], given_.astype(np.float32))


@kernel
def look_up(table, places, found, chosen):
    """Of each lane's row of ``table`` the second column; the places that are below 3."""
    lanes = load_lanes(places, 0)
    store_lanes(found, 0, gather(table, lanes, 1))
    store_lanes(chosen, 0, select(lanes < np.int32(3), lanes, np.int32(-1)))


@given(places=arrays.arrays(np.int32, (1, WIDTH), elements=st.integers(0, 6)))
def test_gathering_takes_each_lanes_own_row(places):
    table = np.arange(21.0).reshape(7, 3)
    found, chosen = np.zeros((1, WIDTH)), np.zeros((1, WIDTH), np.int32)
    look_up(table, places, found, chosen)
    np.testing.assert_array_equal(found[0], table[places[0], 1])
    np.testing.assert_array_equal(chosen[0], np.where(places[0] < 3, places[0], -1))


@kernel
def count(bits, results):
    """How many, the lowest, and there and back."""
    results[0], results[1], results[2] = count_bits(bits), first_bit(bits), bits_of(mask_of(bits))


@given(st.integers(1, 2**WIDTH - 1))
def test_bits_of_a_mask_are_counted_and_found(bits):
    results = np.zeros(3, np.int64)
    count(bits, results)
    assert results.tolist() == [bits.bit_count(), (bits & -bits).bit_length() - 1, bits]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_kernels_as_plain_python_calculate_the_same(dtype, data):
    values = data.draw(rows(dtype))
    names = {name: getattr(_lanes, f"_plain_{plain}") for name, plain in PLAIN.items()}
    function = getattr(reckon, "py_func", reckon)
    plain = type(function)(function.__code__, function.__globals__ | names, function.__name__)
    results, bits = np.zeros((10, WIDTH), dtype), np.zeros(5, np.int64)
    with np.errstate(all="ignore"):
        plain(values, results, bits)
    wanted, masks = expected(values)
    np.testing.assert_array_equal(results, wanted)
    assert bits.tolist() == masks


PLAIN = {
    "load_lanes": "load",
    "store_lanes": "store",
    "lesser_lanes": "lesser",
    "greater_lanes": "greater",
    "select": "select",
    "spread": "spread",
    "bits_of": "bits",
}
