"""Sixteen numbers side by side are what sixteen numbers are one by one, compiled and as NumPy has them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hilsim.compilation import plain_lanes
from hilsim.compilation.jit import kernel
from hilsim.compilation.lane_math import logarithms, sines_and_cosines
from hilsim.compilation.lanes import (
    WIDTH,
    bit_patterns,
    bits_of,
    count_bits,
    doubles,
    first_bit,
    floor_lanes,
    from_bit_patterns,
    gather,
    greater_lanes,
    lane_numbers,
    lesser_lanes,
    load_lanes,
    magnitudes,
    mask_of,
    roots,
    scatter,
    select,
    signed_doubles,
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
def put(table, places, values, moved):
    """Lanes to rows, and to the rows after the next."""
    scatter(table, load_lanes(places, 0), 1, load_lanes(values, 0))
    store_lanes(moved, 0, load_lanes(places, 0) + np.int32(2))


@given(st.permutations(range(WIDTH)))
def test_lanes_are_put_into_rows_in_order(permutation):
    places = np.array([permutation], np.int32)
    places[0, 3] = places[0, 12]
    table, moved = np.zeros((WIDTH, 2)), np.zeros((1, WIDTH), np.int32)
    values = np.arange(1.0, WIDTH + 1.0).reshape(1, WIDTH)
    put(table, places, values, moved)
    wanted = np.zeros((WIDTH, 2))
    for place, value in zip(places[0], values[0], strict=True):
        wanted[place, 1] = value
    np.testing.assert_array_equal(table, wanted)
    np.testing.assert_array_equal(moved, places + 2)


@kernel
def twiddle(words, values, results, reals):
    """Every operator of whole numbers, and what lies between them and float64."""
    a, b = load_lanes(words, 0), load_lanes(words, 1)
    store_lanes(results, 0, a + b)
    store_lanes(results, 1, a - b)
    store_lanes(results, 2, a * b)
    store_lanes(results, 3, (a & b) ^ (a | b))
    store_lanes(results, 4, (a >> np.uint64(11)) | (b << np.uint64(32)))
    store_lanes(results, 5, lane_numbers())
    store_lanes(results, 6, bit_patterns(load_lanes(values, 0)))
    store_lanes(reals, 0, signed_doubles(a))
    store_lanes(reals, 1, from_bit_patterns(b))
    store_lanes(reals, 2, roots(load_lanes(values, 0)))


@given(arrays.arrays(np.uint64, (2, WIDTH)), rows(np.float64, 1))
def test_whole_numbers_wrap_around_and_their_bits_are_those_of_reals(words, values):
    results, reals = np.zeros((7, WIDTH), np.uint64), np.zeros((3, WIDTH))
    twiddle(words, values, results, reals)
    a, b = words
    wanted = [a + b, a - b, a * b, (a & b) ^ (a | b), (a >> np.uint64(11)) | (b << np.uint64(32)), np.arange(WIDTH), values[0].view(np.uint64)]
    np.testing.assert_array_equal(results, np.array(wanted, np.uint64))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(reals, [a.view(np.int64).astype(np.float64), b.view(np.float64), np.sqrt(values[0])])


@kernel
def reckon_functions(values, results):
    """The functions of angles and logarithms of each row."""
    for row in range(values.shape[0]):
        x = load_lanes(values, row)
        sines, cosines = sines_and_cosines(x)
        store_lanes(results, 3 * row, sines)
        store_lanes(results, 3 * row + 1, cosines)
        store_lanes(results, 3 * row + 2, logarithms(x))


def test_sines_cosines_and_logarithms_are_those_of_longer_numbers():
    draws = np.random.default_rng(5)
    values = np.concatenate(
        [draws.random(4000), draws.uniform(0.0, 1e6, 3000), 1.0 - draws.random(2000) ** 9, np.arange(1, 801) / 8.0, 2.0 ** -np.arange(1.0, 41.0)]
    )
    values = values[: len(values) // WIDTH * WIDTH].reshape(-1, WIDTH)
    results = np.zeros((3 * len(values), WIDTH))
    reckon_functions(values, results)
    results = results.reshape(-1, 3, WIDTH)
    long = values.astype(np.longdouble)
    angle = 8 * np.arctan(np.longdouble(1)) * (long - np.floor(long))
    assert abs(results[:, 0] - np.sin(angle)).max() < 3e-16
    assert abs(results[:, 1] - np.cos(angle)).max() < 3e-16
    exact = np.log(long)
    assert (abs(results[:, 2] - exact) / np.maximum(abs(exact), 0.25)).max() < 4e-16


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
    names = {name: getattr(plain_lanes, plain) for name, plain in PLAIN.items()}
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
