"""Tuples at addresses that running kernels read."""

import gc
import sys
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import pytest

from hilsim.compilation.jit import by_reference, kernel
from hilsim.compilation.pins import Pin, is_alike, tuple_at
from tests.compiled import compiled_only


@by_reference
class Numbers(NamedTuple):
    values: npt.NDArray[np.float64]
    factor: int


@kernel
def weighted_sum(like: Numbers, addresses: npt.NDArray[np.int64]) -> float:
    total = 0.0
    for row in range(addresses.size):
        found = tuple_at(addresses[row], like)
        total += found.values.sum() * found.factor
    return total


@pytest.fixture
def numbers():
    return [Numbers(np.full(3, 10.0**power), power + 1) for power in range(4)]


def test_a_kernel_reads_each_tuple_at_its_address(numbers):
    pins = [Pin(each) for each in numbers]
    addresses = np.array([pin.address for pin in pins])
    assert weighted_sum(numbers[0], addresses) == 3.0 * (1 + 2 * 10 + 3 * 100 + 4 * 1000)
    assert weighted_sum(numbers[0], addresses[::-1].copy()) == 3.0 * (1 + 2 * 10 + 3 * 100 + 4 * 1000)
    for pin in pins:
        pin.release()


@compiled_only
def test_a_pinned_tuple_stays_until_it_is_released():
    values = np.full(3, 2.0)
    pin, counted = Pin(Numbers(values, 1)), sys.getrefcount(values)
    for _ in range(100):
        assert weighted_sum(Numbers(np.zeros(1), 0), np.array([pin.address])) == 6.0
    assert sys.getrefcount(values) == counted
    pin.release()
    gc.collect()
    assert sys.getrefcount(values) == counted - 1


@compiled_only
def test_arrays_outlive_the_python_tuple_that_was_pinned():
    pins = [Pin(Numbers(np.full(100_000, float(number)), 1)) for number in range(50)]
    like = Numbers(np.zeros(1), 0)
    gc.collect()
    assert weighted_sum(like, np.array([pin.address for pin in pins])) == 100_000.0 * sum(range(50))
    for pin in pins:
        pin.release()


VALUES = [
    1,
    -(2**63),
    2**63,
    1.0,
    True,
    None,
    np.float32(1.0),
    np.int32(1),
    np.zeros(3),
    np.zeros(0),
    np.zeros(3, np.float32),
    np.zeros((3, 1)),
    np.zeros((3, 4)),
    np.zeros((3, 4)).T,
    np.zeros((3, 4))[:, ::2],
    np.frombuffer(bytes(24)),
    (1, 2.0),
    (1, 2),
    (1, 2.0, 3),
    Numbers(np.zeros(1), 0),
    Numbers(np.zeros(4), 9),
    Numbers(np.zeros(4, np.float32), 9),
]


@compiled_only
def test_values_that_are_alike_are_of_one_type_for_kernels():
    for value in VALUES:
        for like in VALUES:
            if is_alike(value, like):
                assert numba.typeof(value) == numba.typeof(like)
    assert is_alike(VALUES[-2], VALUES[-3])
    assert not is_alike(VALUES[-1], VALUES[-2])
