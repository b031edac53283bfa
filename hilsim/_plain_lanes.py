"""What ``hilsim._lanes`` gives kernels, as NumPy arrays of sixteen: for kernels as plain Python."""

from typing import Any

import numpy as np
import numpy.typing as npt

WIDTH = 16


def permit_infinities() -> None:
    """Lanes that do not count may divide by zero."""
    np.seterr(divide="ignore", invalid="ignore", over="ignore")


def load(array: npt.NDArray[Any], row: int) -> Any:
    return array[row].copy()


def store(array: npt.NDArray[Any], row: int, values: Any) -> None:
    array[row] = values


def select(condition: Any, one: Any, other: Any) -> Any:
    return np.where(condition, one, other)


def lesser(one: Any, other: Any) -> Any:
    return np.where(one < other, one, other)


def greater(one: Any, other: Any) -> Any:
    return np.where(one > other, one, other)


def bits(mask: Any) -> int:
    return sum(1 << place for place in range(WIDTH) if mask[place])


def mask(bits: int) -> Any:
    return np.array([bits >> place & 1 for place in range(WIDTH)], np.bool_)


def count(bits: int) -> int:
    return int(bits).bit_count()


def first(bits: int) -> int:
    return (int(bits) & -int(bits)).bit_length() - 1


def gather(array: npt.NDArray[Any], rows: Any, column: int) -> Any:
    return array[rows, column]


def scatter(array: npt.NDArray[Any], rows: Any, column: int, values: Any) -> None:
    for row, value in zip(rows, values, strict=True):
        array[row, column] = value


def spread(value: Any) -> Any:
    return np.full(WIDTH, value)


def lane_numbers() -> Any:
    return np.arange(WIDTH, dtype=np.uint64)
