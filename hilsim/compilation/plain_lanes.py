"""The operations of ``hilsim.compilation.lanes`` with NumPy arrays of sixteen: for kernels as plain Python."""

from typing import Any

import numpy as np
import numpy.typing as npt

WIDTH = 16


def permit_infinities() -> None:
    """Permit division by zero in lanes that are not used."""
    np.seterr(divide="ignore", invalid="ignore", over="ignore")


def load(array: npt.NDArray[Any], row: int) -> Any:
    """Load a row of sixteen numbers."""
    return array[row].copy()


def store(array: npt.NDArray[Any], row: int, values: Any) -> None:
    """Store a row of sixteen numbers."""
    array[row] = values


def select(condition: Any, one: Any, other: Any) -> Any:
    """``one`` where the mask is true, else ``other``."""
    return np.where(condition, one, other)


def lesser(one: Any, other: Any) -> Any:
    """Lesser of two in each lane."""
    return np.where(one < other, one, other)


def greater(one: Any, other: Any) -> Any:
    """Greater of two in each lane."""
    return np.where(one > other, one, other)


def bits(mask: Any) -> int:
    """Integer of a mask: bit k is lane k."""
    return sum(1 << place for place in range(WIDTH) if mask[place])


def mask(bits: int) -> Any:
    """Mask of an integer."""
    return np.array([bits >> place & 1 for place in range(WIDTH)], np.bool_)


def count(bits: int) -> int:
    """Number of bits set in an integer."""
    return int(bits).bit_count()


def first(bits: int) -> int:
    """Lowest bit set in an integer."""
    return (int(bits) & -int(bits)).bit_length() - 1


def gather(array: npt.NDArray[Any], rows: Any, column: int) -> Any:
    """Element of each lane's row."""
    return array[rows, column]


def scatter(array: npt.NDArray[Any], rows: Any, column: int, values: Any) -> None:
    """Store an element to each lane's row, in the order of lanes."""
    for row, value in zip(rows, values, strict=True):
        array[row, column] = value


def spread(value: Any) -> Any:
    """Repeat a scalar in every lane."""
    return np.full(WIDTH, value)


def lane_numbers() -> Any:
    """Number of each lane, 0 to 15."""
    return np.arange(WIDTH, dtype=np.uint64)
