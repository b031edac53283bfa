"""What ``hilsim.compilation.lanes`` gives kernels, as NumPy arrays of sixteen: for kernels as plain Python."""

from typing import Any

import numpy as np
import numpy.typing as npt

WIDTH = 16


def permit_infinities() -> None:
    """Lanes that do not count may divide by zero."""
    np.seterr(divide="ignore", invalid="ignore", over="ignore")


def load(array: npt.NDArray[Any], row: int) -> Any:
    """A row of sixteen numbers."""
    return array[row].copy()


def store(array: npt.NDArray[Any], row: int, values: Any) -> None:
    """Write a row of sixteen numbers."""
    array[row] = values


def select(condition: Any, one: Any, other: Any) -> Any:
    """Where the mask is true the one, else the other."""
    return np.where(condition, one, other)


def lesser(one: Any, other: Any) -> Any:
    """The lesser of two in each lane."""
    return np.where(one < other, one, other)


def greater(one: Any, other: Any) -> Any:
    """The greater of two in each lane."""
    return np.where(one > other, one, other)


def bits(mask: Any) -> int:
    """A mask as an integer: bit k is lane k."""
    return sum(1 << place for place in range(WIDTH) if mask[place])


def mask(bits: int) -> Any:
    """An integer as a mask."""
    return np.array([bits >> place & 1 for place in range(WIDTH)], np.bool_)


def count(bits: int) -> int:
    """How many bits of an integer are set."""
    return int(bits).bit_count()


def first(bits: int) -> int:
    """The lowest bit of an integer that is set."""
    return (int(bits) & -int(bits)).bit_length() - 1


def gather(array: npt.NDArray[Any], rows: Any, column: int) -> Any:
    """An element of each lane's row."""
    return array[rows, column]


def scatter(array: npt.NDArray[Any], rows: Any, column: int, values: Any) -> None:
    """Write an element of each lane's row, in the order of lanes."""
    for row, value in zip(rows, values, strict=True):
        array[row, column] = value


def spread(value: Any) -> Any:
    """A scalar in every lane."""
    return np.full(WIDTH, value)


def lane_numbers() -> Any:
    """Each lane's own number, 0 to 15."""
    return np.arange(WIDTH, dtype=np.uint64)
